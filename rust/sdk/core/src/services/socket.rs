//! What the standard library cannot do with Unix sockets: connect within a time limit, and check whether the other side
//! is still there.

use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Whether the connection is open and silent. Bytes that wait on it belong to no call, so it cannot be used either.
pub fn is_quiet(stream: &UnixStream) -> bool {
    let mut byte = 0_u8;
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the descriptor is open for as long as `stream` is borrowed, and the buffer is one byte long.
    let n = unsafe { libc::recv(stream.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
    n < 0 && io::Error::last_os_error().kind() == ErrorKind::WouldBlock
}

/// Connects. A server whose queue of connections is full would make the caller wait without a limit.
///
/// # Errors
/// What the system says; `WouldBlock` after `limit`.
#[cfg(target_os = "linux")]
pub fn connect(path: &str, limit: Duration) -> io::Result<UnixStream> {
    use std::os::fd::FromRawFd;

    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
    // One byte stays zero: it ends the path.
    if path.len() >= address.sun_path.len() {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("the path {path} is too long for a socket")));
    }
    for (to, from) in address.sun_path.iter_mut().zip(path.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and owned by nothing else.
    let stream = unsafe { UnixStream::from_raw_fd(fd) };
    stream.set_write_timeout(Some(limit))?;
    // SAFETY: the address is a whole sockaddr_un of this length.
    match unsafe { libc::connect(fd, (&raw const address).cast(), size_of_val(&address) as libc::socklen_t) } {
        0 => Ok(stream),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Connects.
#[cfg(not(target_os = "linux"))]
pub fn connect(path: &str, _: Duration) -> io::Result<UnixStream> {
    UnixStream::connect(path)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_an_open_and_silent_connection_is_quiet() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        assert!(is_quiet(&ours));
        theirs.write_all(b"x").unwrap();
        assert!(!is_quiet(&ours));
        // Looking takes nothing away.
        assert_eq!((&ours).read(&mut [0; 8]).unwrap(), 1);
        assert!(is_quiet(&ours));
        drop(theirs);
        assert!(!is_quiet(&ours));
    }

    #[test]
    fn connecting_ends_when_nobody_accepts() {
        let path = std::env::temp_dir().join(format!("edge-sdk-connect-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        // SAFETY: the descriptor is open, and listening already.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let connect = || connect(path.to_str().unwrap(), Duration::from_millis(50));
        let _accepted = connect().unwrap();
        let refused = connect();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(connect().unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(super::connect(&"x".repeat(108), Duration::ZERO).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
