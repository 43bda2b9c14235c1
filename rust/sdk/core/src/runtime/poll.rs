//! Asks the system whether connections can be read, and streams be written, which the standard library cannot do.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Whether a pipe has room for a short write, up to `PIPE_BUF`, which is 4 KiB.
pub fn is_writable(stream: &impl AsRawFd) -> bool {
    let mut fd = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: there is one, and its descriptor is open for as long as the stream is borrowed.
    unsafe { libc::poll(&mut fd, 1, 0) == 1 && fd.revents & libc::POLLOUT != 0 }
}

/// Whether there is something to read, or the end.
pub fn is_readable(stream: &UnixStream) -> bool {
    let mut fd = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: there is one, and its descriptor is open for as long as the stream is borrowed.
    unsafe { libc::poll(&mut fd, 1, 0) == 1 }
}

/// Waits until one of them can be read, or has ended. Which one, the first before the second; `None` after `limit`.
pub fn first_readable(first: &UnixStream, second: &UnixStream, limit: Duration) -> Option<usize> {
    let mut fds =
        [first, second].map(|stream| libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis();
        let timeout_ms = i32::try_from(left).unwrap_or(i32::MAX);
        // SAFETY: the array has this length, and the descriptors are open for as long as the streams are borrowed.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) };
        let interrupted = ready < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if !interrupted {
            return fds.iter().position(|fd| fd.revents != 0);
        }
    }
}
