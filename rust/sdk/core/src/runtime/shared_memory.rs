//! Memory that a stream shares with the gateway, which sends to the client what the handler puts there: most of a large
//! body is not copied through the socket. It comes as a descriptor on the connection.

use crate::wire::frame::{MAX_CREDIT, MEMORY_BYTES, MIN_SHARED_BYTES};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{copy_nonoverlapping, null_mut, NonNull};

/// The memory of a stream.
pub struct SharedMemory {
    start: NonNull<u8>,
    length: usize,
    /// Where the next bytes belong.
    next: usize,
}

// SAFETY: it has one owner at a time, and belongs to no thread.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Memory of that many bytes behind a descriptor. `None` if it cannot be had, or is too short: then the stream goes
    /// through the socket.
    pub fn map(file: &OwnedFd, length: usize) -> Option<Self> {
        if length < MEMORY_BYTES {
            return None;
        }
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: the kernel chooses a place where nothing else is.
        let start = unsafe { libc::mmap(null_mut(), length, access, flags, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        Some(SharedMemory { start: NonNull::new(start.cast())?, length, next: 0 })
    }

    /// Puts bytes there, and returns where they begin; `None` if they are too few to be put there, or too many. There
    /// has to be credit for them: what was put before and is not sent yet stays as it is then.
    pub fn put(&mut self, bytes: &[u8]) -> Option<usize> {
        if bytes.len() < MIN_SHARED_BYTES || bytes.len() > self.length - MAX_CREDIT {
            return None;
        }
        let start = if self.length - self.next < bytes.len() { 0 } else { self.next };
        // SAFETY: there is room for them behind the start, and only the gateway has this memory, too.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(start), bytes.len()) };
        self.next = start + bytes.len();
        Some(start)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Receives bytes, at least one unless the connection is closed, and the descriptor that comes with them.
///
/// # Errors
/// Those of the system.
pub fn receive(stream: &impl AsRawFd, room: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    const SPACE: usize = 64;
    // Aligned as a header of a control message has to be.
    let mut control = [0_usize; SPACE / size_of::<usize>()];
    let mut slice = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: all fields may be zero.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &mut slice;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = SPACE as _;
    // SAFETY: everything that the message refers to lives until the call returns.
    let received = unsafe { libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((received as usize, descriptor_of(&message)))
}

/// The first descriptor of a message; the others are closed.
fn descriptor_of(message: &libc::msghdr) -> Option<OwnedFd> {
    let mut descriptors = Vec::new();
    // SAFETY: the kernel has filled the control messages, and these functions stay within them. Nothing else knows the
    // descriptors yet.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if (control.cmsg_level, control.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = control.cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<i32>();
                let numbers = (0..bytes / size_of::<i32>()).map(|n| data.add(n).read_unaligned());
                descriptors.extend(numbers.map(|number| OwnedFd::from_raw_fd(number)));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    descriptors.into_iter().next()
}
