//! Connections that the launcher makes, because the user of this process cannot reach the sockets of handlers: see
//! `rust/launcher/src/connector.rs`.
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, send};
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

use super::socket::no_socket;

static CONNECTOR: OnceLock<Connector> = OnceLock::new();

pub struct Connector(Mutex<OwnedFd>);

impl Connector {
    /// Has the launcher make all connections to handlers from now on.
    pub fn set(socket: OwnedFd) {
        // There is one at most.
        let _ = CONNECTOR.set(Self(Mutex::new(socket)));
    }

    /// `None`: this process connects by itself.
    pub fn get() -> Option<&'static Self> {
        CONNECTOR.get()
    }

    /// # Errors
    /// Those of the system.
    pub async fn connect(&'static self, path: &Path) -> io::Result<UnixStream> {
        let path = path.to_owned();
        // Answered in microseconds, unless the machine has much to do: then requests do not wait for it.
        let connected = spawn_blocking(move || self.ask(&path)).await;
        UnixStream::from_std(connected.map_err(io::Error::other)??)
    }

    fn ask(&self, path: &Path) -> io::Result<net::UnixStream> {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match send(socket.as_raw_fd(), path.as_os_str().as_bytes(), MsgFlags::MSG_NOSIGNAL) {
            Err(Errno::EPIPE | Errno::ECONNRESET) => gone(),
            sent => sent?,
        };
        let mut code = [0; 4];
        let mut control = cmsg_space!(RawFd);
        let mut parts = [IoSliceMut::new(&mut code)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let Ok(answer) = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags) else { gone() };
        // Cut off, where this process has no free descriptor for it.
        let descriptors = answer.cmsgs().into_iter().flatten().find_map(|message| match message {
            ControlMessageOwned::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        if answer.bytes == 0 {
            gone();
        }
        match (i32::from_ne_bytes(code), descriptors.as_deref()) {
            // SAFETY: it has just arrived, and nothing else knows it.
            (0, Some([connection])) => Ok(unsafe { net::UnixStream::from_raw_fd(*connection) }),
            (0, _) => Err(io::Error::from_raw_os_error(libc::EMFILE)),
            (libc::ENOTSOCK, _) => Err(no_socket()),
            (code, _) => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Without it this process can serve no handler that starts: the supervisor starts another front.
fn gone() -> ! {
    eprintln!("Error: the process that connects to handlers has ended");
    std::process::exit(1);
}
