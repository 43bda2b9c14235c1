//! Memory of a thread to read into. What has been read is used or copied before anything else of the thread runs, so
//! that a connection on which nothing arrives has no buffer.
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

const BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; BYTES].into_boxed_slice());
}

/// Not to be called within itself.
pub fn with<T>(use_bytes: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|bytes| use_bytes(bytes))
}

/// Reads behind what is in `bytes`, at most `limit` more. Returns how many, 0 at the end.
pub fn read_more(
    reader: Pin<&mut impl AsyncRead>,
    cx: &mut Context<'_>,
    bytes: &mut Vec<u8>,
    limit: usize,
) -> Poll<io::Result<usize>> {
    let before = bytes.len();
    // Not more at once: memory is for what has arrived.
    bytes.reserve(limit.min(BYTES));
    let spare = bytes.spare_capacity_mut();
    let length = spare.len().min(limit);
    let mut buffer = ReadBuf::uninit(&mut spare[..length]);
    ready!(reader.poll_read(cx, &mut buffer))?;
    let read = buffer.filled().len();
    // SAFETY: the reader has filled these bytes, which follow those that were there.
    unsafe { bytes.set_len(before + read) };
    Poll::Ready(Ok(read))
}
