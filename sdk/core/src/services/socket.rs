//! What the standard library cannot do with Unix sockets: connect within a time limit, and look whether the other side
//! is still there.

use std::io::{self, ErrorKind};
use std::os::raw::{c_int, c_void};
use std::os::unix::io::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

extern "C" {
    fn recv(socket: c_int, buffer: *mut c_void, length: usize, flags: c_int) -> isize;
}

const MSG_PEEK: c_int = 2;
#[cfg(target_os = "linux")]
const MSG_DONTWAIT: c_int = 0x40;
#[cfg(not(target_os = "linux"))]
const MSG_DONTWAIT: c_int = 0x80;

/// Whether the connection is open and silent. Bytes that wait on it belong to no call, so it is of no more use either.
pub fn is_quiet(stream: &UnixStream) -> bool {
    let mut byte = 0_u8;
    // SAFETY: the descriptor is open for as long as `stream` is borrowed, and the buffer is one byte long.
    let n = unsafe { recv(stream.as_raw_fd(), (&mut byte as *mut u8).cast(), 1, MSG_PEEK | MSG_DONTWAIT) };
    n < 0 && io::Error::last_os_error().kind() == ErrorKind::WouldBlock
}

/// Connects. A server that accepts nobody any more, whose queue is full, would make the caller wait for ever.
///
/// # Errors
/// What the system says; `WouldBlock` when the time is over.
#[cfg(target_os = "linux")]
pub fn connect(path: &str, limit: Duration) -> io::Result<UnixStream> {
    use std::os::unix::io::FromRawFd;

    #[repr(C)]
    struct Address {
        family: u16,
        path: [u8; 108],
    }
    extern "C" {
        fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
        fn connect(socket: c_int, address: *const Address, length: u32) -> c_int;
    }
    const AF_UNIX: c_int = 1;
    const SOCK_STREAM: c_int = 1;
    const SOCK_CLOEXEC: c_int = 0x80000;

    let mut address = Address { family: AF_UNIX as u16, path: [0; 108] };
    // One byte stays zero: it ends the path.
    if path.len() >= address.path.len() {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("the path {path} is too long for a socket")));
    }
    address.path[..path.len()].copy_from_slice(path.as_bytes());
    // SAFETY: takes numbers only.
    let fd = unsafe { socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and known to nobody else.
    let stream = unsafe { UnixStream::from_raw_fd(fd) };
    stream.set_write_timeout(Some(limit))?;
    // SAFETY: the address is a whole sockaddr_un, and its length is told.
    match unsafe { connect(fd, &address, size_of::<Address>() as u32) } {
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
    use std::time::Instant;

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
        extern "C" {
            fn listen(socket: c_int, backlog: c_int) -> c_int;
        }
        let path = std::env::temp_dir().join(format!("edge-sdk-connect-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        // SAFETY: the descriptor is open, and listening already.
        assert_eq!(unsafe { listen(listener.as_raw_fd(), 0) }, 0);
        let connect = || connect(path.to_str().unwrap(), Duration::from_millis(50));
        let _accepted = connect().unwrap();
        let start = Instant::now();
        let refused = connect();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert_eq!(connect().unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(super::connect(&"x".repeat(108), Duration::ZERO).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
