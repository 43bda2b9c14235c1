//! Connects to the socket of a handler. Its folder belongs to the handler, which could put a link there to a socket
//! that it cannot reach itself, so no link is followed.
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tokio::net::UnixStream;

use super::connector::Connector;

/// # Errors
/// Those of the system; also when the file is not a socket.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    if let Some(connector) = Connector::get() {
        return connector.connect(path).await;
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("the path of its socket has no folder"));
    };
    let folder = open_location(libc::AT_FDCWD, folder.as_os_str().as_bytes(), libc::O_DIRECTORY)?;
    let file = open_location(folder.as_raw_fd(), name.as_bytes(), 0)?;
    if !is_socket(&file)? {
        return Err(no_socket());
    }
    UnixStream::connect(format!("/proc/self/fd/{}", file.as_raw_fd())).await
}

/// The error for a file that is no socket.
pub fn no_socket() -> io::Error {
    io::Error::other("the file of its socket is not a socket")
}

/// Whether this process, or the machine, has no free file descriptor.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Opens a location in the file system without opening the file.
fn open_location(folder: i32, name: &[u8], flags: i32) -> io::Result<OwnedFd> {
    let name = CString::new(name)?;
    let flags = flags | libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name is a string of C that lives until the call returns.
    let fd = unsafe { libc::openat(folder, name.as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it has just been opened, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn is_socket(file: &OwnedFd) -> io::Result<bool> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the descriptor is open, and there is room for the result.
    if unsafe { libc::fstat(file.as_raw_fd(), stat.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it.
    Ok(unsafe { stat.assume_init() }.st_mode & libc::S_IFMT == libc::S_IFSOCK)
}
