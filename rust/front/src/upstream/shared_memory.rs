//! Memory that a handler puts the body of its stream into, and the kernel sends it from: it is not copied through the
//! socket of the handler, nor into this process. The front makes it, and gives the handler its descriptor. A handler
//! may keep that, so a connection has few of these, and uses them again. What is there may change at any time, and may
//! be gone: nothing in this process may look at it.
use std::cell::RefCell;
use std::io;
use std::mem::size_of;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use edge_wire::MEMORY_BYTES;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::memory::MemoryShare;
use crate::workers;

/// Streams of a connection that can have memory at a time.
const MAX_MEMORIES: usize = 4;
/// A process may have 65,530 mappings, whatever they are for, unless the system is told otherwise.
const MAX_MAPPINGS: usize = 8_192;
/// Since Linux 6.3, before which there is no shared memory: it cannot be run as a program.
const MFD_NOEXEC_SEAL: u32 = 8;

static PLACES_TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The memories of a connection.
#[derive(Default)]
pub struct Memories {
    all: RefCell<Vec<Arc<Mapping>>>,
}

/// Memory as the front has it.
struct Mapping {
    start: NonNull<u8>,
    _place: MappingPermit,
}

/// One of the mappings that this process may have.
struct MappingPermit;

// SAFETY: it belongs to no thread, and this process does not write to it.
unsafe impl Send for Mapping {}
unsafe impl Sync for Mapping {}

/// Memory for a stream. Dropped with the stream: its pages are given back then.
pub struct SharedMemory {
    mapping: Arc<Mapping>,
    _share: MemoryShare,
}

/// What the handler is told of it.
pub struct MemoryOffer {
    /// Which of those of the connection.
    pub which: u32,
    /// When it is given first.
    pub file: Option<OwnedFd>,
}

/// Bytes of it.
struct Part {
    mapping: Arc<Mapping>,
    range: Range<usize>,
}

impl Memories {
    /// Memory for a stream, which takes it from `share`. `None` if there is none.
    pub fn take(&self, mut share: MemoryShare) -> Option<(SharedMemory, MemoryOffer)> {
        let mut all = self.all.borrow_mut();
        // Nothing is sent from it any more, and its pages have been given back.
        let unused = all.iter().position(|mapping| Arc::strong_count(mapping) == 1);
        if (unused.is_none() && all.len() == MAX_MEMORIES) || !share.set(MEMORY_BYTES) {
            return None;
        }
        let (which, file) = match unused {
            Some(which) => (which, None),
            None => {
                // Without it, the stream goes through the socket.
                let (mapping, file) = Mapping::create().ok()?;
                all.push(Arc::new(mapping));
                (all.len() - 1, Some(file))
            }
        };
        let memory = SharedMemory { mapping: all[which].clone(), _share: share };
        Some((memory, MemoryOffer { which: which as u32, file }))
    }
}

#[cfg(test)]
impl Memories {
    pub fn has_unused(&self) -> bool {
        self.all.borrow().iter().any(|mapping| Arc::strong_count(mapping) == 1)
    }
}

impl SharedMemory {
    /// What is there now or later, for the kernel to send. `None` if it is not all within.
    pub fn part(&self, range: Range<usize>) -> Option<Bytes> {
        let is_within = range.end <= MEMORY_BYTES;
        is_within.then(|| Bytes::from_owner(Part { mapping: self.mapping.clone(), range }))
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let mapping = self.mapping.clone();
        // Another thread does it, because the handler may have it mapped very often. It is used again only after that.
        workers::in_background(move || mapping.give_back());
    }
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: it is within the mapping, which stays for as long as a part of it. The bytes may change meanwhile,
        // which a slice of Rust may not: so nothing may read them, and the kernel does by itself.
        unsafe { std::slice::from_raw_parts(self.mapping.start.as_ptr().add(self.range.start), self.range.len()) }
    }
}

impl Mapping {
    /// Gives its pages back.
    fn give_back(&self) {
        // SAFETY: all of it is mapped, and nothing in this process looks at it. If it fails, the pages are there until
        // the connection ends.
        unsafe { libc::madvise(self.start.as_ptr().cast(), MEMORY_BYTES, libc::MADV_REMOVE) };
    }

    /// # Errors
    /// Those of the system; also when this process has as many as it may.
    fn create() -> io::Result<(Self, OwnedFd)> {
        let place = MappingPermit::take().ok_or(io::ErrorKind::OutOfMemory)?;
        let file = create_file()?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: these take numbers only.
        check(unsafe { libc::ftruncate(file.as_raw_fd(), MEMORY_BYTES as libc::off_t) })?;
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        // Nothing is written, but MADV_REMOVE needs that right.
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: the kernel chooses a place where nothing else is.
        let start = unsafe { libc::mmap(null_mut(), MEMORY_BYTES, access, flags, file.as_raw_fd(), 0) };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        Ok((Self { start: start.ok_or_else(io::Error::last_os_error)?, _place: place }, file))
    }
}

impl MappingPermit {
    fn take() -> Option<Self> {
        let next = |taken: usize| (taken < MAX_MAPPINGS).then_some(taken + 1);
        PLACES_TAKEN.fetch_update(Relaxed, Relaxed, next).is_ok().then_some(Self)
    }
}

impl Drop for MappingPermit {
    fn drop(&mut self) {
        PLACES_TAKEN.fetch_sub(1, Relaxed);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), MEMORY_BYTES) };
    }
}

fn create_file() -> io::Result<OwnedFd> {
    // Handlers may have no other memory that can be run as a program.
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL;
    // SAFETY: the name is a string of C.
    let file = unsafe { libc::memfd_create(c"stream".as_ptr(), flags) };
    check(file)?;
    // SAFETY: it has just been made, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Sends bytes, and a descriptor with the first of them. Returns how many were sent.
///
/// # Errors
/// Those of the system.
pub async fn send_with(stream: &UnixStream, bytes: &[u8], file: &OwnedFd) -> io::Result<usize> {
    stream.async_io(Interest::WRITABLE, || send_message(stream, bytes, file)).await
}

fn send_message(stream: &UnixStream, bytes: &[u8], file: &OwnedFd) -> io::Result<usize> {
    const SPACE: usize = 64;
    // Aligned as a header of a control message has to be.
    let mut control = [0_usize; SPACE / size_of::<usize>()];
    let mut slice = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all fields may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut slice;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: there is room for the header and one descriptor, and the message lives until the call returns.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(size_of::<i32>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as _;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(file.as_raw_fd());
        libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
