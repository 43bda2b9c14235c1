//! The channel that Node opens to a child process: a Unix socket, and one JSON text to a line, both ways.
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::task::spawn_local;

use super::messages::FromService;

/// Its descriptor is in this variable.
const VARIABLE: &str = "NODE_CHANNEL_FD";
/// Log lines are dropped while so many bytes are not read by the actor host.
const MAX_UNREAD_BYTES: usize = 1024 * 1024;
/// How long a process whose last message cannot be sent waits before it ends.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What is sent to the actor host. Without one, as when the program is started by hand, nothing is.
pub struct Channel {
    unsent: RefCell<Vec<u8>>,
    has_unsent: Notify,
    /// The process ends with this code when all is sent.
    exit_code: Cell<Option<i32>>,
}

impl Channel {
    /// Takes the channel over that the environment names. To be called once.
    pub fn open() -> io::Result<(Rc<Self>, OwnedReadHalf)> {
        let number = std::env::var(VARIABLE).ok().and_then(|text| text.parse::<i32>().ok()).filter(|&fd| fd > 2);
        let number = number.ok_or_else(|| io::Error::other("only an actor host starts this program"))?;
        // SAFETY: takes numbers only; fails for what is no descriptor.
        if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is open, as the call before has shown, and nothing else in this process knows it.
        let stream = net::UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) });
        stream.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(stream)?.into_split();
        let channel =
            Rc::new(Self { unsent: RefCell::default(), has_unsent: Notify::new(), exit_code: Cell::default() });
        spawn_local(channel.clone().write(writer));
        Ok((channel, reader))
    }

    pub fn send(&self, message: &FromService) {
        let mut unsent = self.unsent.borrow_mut();
        if matches!(message, FromService::Log { .. }) && unsent.len() > MAX_UNREAD_BYTES {
            return;
        }
        let before = unsent.len();
        match serde_json::to_writer(&mut *unsent, message) {
            Ok(()) => unsent.push(b'\n'),
            Err(_) => unsent.truncate(before),
        }
        self.has_unsent.notify_one();
    }

    /// Ends the process when all is sent.
    pub fn exit(&self, code: i32) {
        self.exit_code.set(Some(code));
        self.has_unsent.notify_one();
    }

    /// Tells why, and ends the process.
    pub fn fail(&self, reason: String) {
        self.send(&FromService::Failed { reason: super::messages::cut(reason) });
        self.exit(1);
        spawn_local(async {
            tokio::time::sleep(LAST_WORDS).await;
            std::process::exit(1);
        });
    }

    async fn write(self: Rc<Self>, mut writer: OwnedWriteHalf) {
        loop {
            self.has_unsent.notified().await;
            let bytes = self.unsent.take();
            // The reader sees that it is closed.
            let _ = writer.write_all(&bytes).await;
            if let (Some(code), true) = (self.exit_code.get(), self.unsent.borrow().is_empty()) {
                std::process::exit(code);
            }
        }
    }
}
