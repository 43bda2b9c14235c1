//! Waiting for one of two connections, which the standard library cannot do.

use std::io;
use std::os::raw::{c_int, c_short};
use std::os::unix::io::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// `struct pollfd` of poll(2).
#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

#[cfg(target_os = "linux")]
type Count = std::os::raw::c_ulong;
#[cfg(not(target_os = "linux"))]
type Count = std::os::raw::c_uint;

extern "C" {
    fn poll(fds: *mut PollFd, count: Count, timeout_ms: c_int) -> c_int;
}

const POLLIN: c_short = 1;

/// Waits until one of them can be read, or has ended. Which one, the first before the second; `None` when the time is over.
pub fn first_readable(first: &UnixStream, second: &UnixStream, limit: Duration) -> Option<usize> {
    let mut fds = [first, second].map(|stream| PollFd { fd: stream.as_raw_fd(), events: POLLIN, revents: 0 });
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis();
        let timeout = c_int::try_from(left).unwrap_or(c_int::MAX);
        // SAFETY: the array is as long as told, and the descriptors are open for as long as the streams are borrowed.
        let ready = unsafe { poll(fds.as_mut_ptr(), fds.len() as Count, timeout) };
        let interrupted = ready < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if !interrupted {
            return fds.iter().position(|fd| fd.revents != 0);
        }
    }
}
