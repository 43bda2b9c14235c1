//! Connects to Unix sockets for a program whose user cannot reach them: the front of a gateway, whose handlers have
//! theirs in files of their own. It is a child of the program, keeps the rights that this takes, and connects to
//! sockets of certain users only.
//!
//! The program asks through its last descriptor, a socket of packets: with a path. The answer is four bytes, an error
//! number of the system in the order of the machine; when it is 0, the connection comes with it (unix(7),
//! `SCM_RIGHTS`). It does not block.
use std::ffi::OsStr;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, sendmsg, socket, socketpair,
};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::{ForkResult, fork};

use crate::failure::{Context, Result};
use crate::monitor::close_streams;
use crate::plan::{Plan, Sockets, Users};
use crate::{filter, limits, privileges};

/// PATH_MAX.
const LONGEST_PATH: usize = 4_096;
/// The rights to reach files of other users, also in the root of their processes: CAP_DAC_OVERRIDE,
/// CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE (capabilities(7)).
const NEEDED: [u32; 3] = [1, 2, 19];

/// Starts the process that connects, for this one, which becomes the program. Returns the descriptor of the program,
/// with which that process ends.
///
/// # Errors
/// It could not be started.
pub fn start(plan: &Plan, users: Users) -> Result<OwnedFd> {
    let (own, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .context("a pair of sockets")?;
    // SAFETY: this process has one thread.
    if let ForkResult::Child = unsafe { fork() }.context("fork")? {
        drop(other);
        let ended = become_connector(plan).and_then(|()| serve(&own, users));
        let failed = ended.inspect_err(|failure| eprintln!("{failure}")).is_err();
        // SAFETY: as SIGKILL, it runs nothing more of this process.
        unsafe { libc::_exit(i32::from(failed)) }
    }
    drop(own);
    limits::place_descriptor(other, plan.streams)
}

fn become_connector(plan: &Plan) -> Result<()> {
    // Signals to the whole group are for whoever has started it.
    for each in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: no handler is installed.
        unsafe { signal(each, SigHandler::SigIgn) }.context("a signal")?;
    }
    close_streams(plan.streams);
    privileges::leave_terminal()?;
    privileges::keep_capabilities(&NEEDED)?;
    privileges::never_gain_any()?;
    filter::install_for_own(Sockets::Unix)
}

/// Answers until the program has ended.
fn serve(socket: &OwnedFd, users: Users) -> Result<()> {
    let mut path = [0; LONGEST_PATH];
    loop {
        let length = match recv(socket.as_raw_fd(), &mut path, MsgFlags::empty()) {
            Err(Errno::EINTR) => continue,
            Ok(0) | Err(Errno::ECONNRESET) => return Ok(()),
            length => length.context("recv")?,
        };
        let connected = connect_to(Path::new(OsStr::from_bytes(&path[..length])), users);
        match answer(socket, connected) {
            // It has ended.
            Err(Errno::EPIPE | Errno::ECONNRESET) => return Ok(()),
            sent => sent.context("sendmsg")?,
        }
    }
}

fn answer(socket: &OwnedFd, connected: nix::Result<OwnedFd>) -> nix::Result<()> {
    let (code, connection) = match connected {
        Ok(connection) => (0, Some(connection)),
        Err(error) => (error as i32, None),
    };
    let descriptors: Vec<_> = connection.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let control = if connection.is_some() { &rights[..] } else { &[] };
    let bytes = code.to_ne_bytes();
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], control, MsgFlags::MSG_NOSIGNAL, None).map(drop)
}

/// The folder may belong to a handler, which could put a link there to a socket that it cannot reach itself: no link is
/// followed, and the socket has to be of one of the users.
fn connect_to(path: &Path, users: Users) -> nix::Result<OwnedFd> {
    let location = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let (folder, name) = path.parent().zip(path.file_name()).ok_or(Errno::EINVAL)?;
    let folder = openat(AT_FDCWD, folder, location | OFlag::O_DIRECTORY, Mode::empty())?;
    let file = openat(&folder, name, location, Mode::empty())?;
    let found = fstat(&file)?;
    if SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT != SFlag::S_IFSOCK {
        return Err(Errno::ENOTSOCK);
    }
    if !users.have(found.st_uid) {
        return Err(Errno::EPERM);
    }
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let connection = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let address = UnixAddr::new(format!("/proc/self/fd/{}", file.as_raw_fd()).as_str())?;
    connect(connection.as_raw_fd(), &address)?;
    Ok(connection)
}
