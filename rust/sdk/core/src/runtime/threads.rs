//! What all threads of a process use: locks that outlive a panic, and threads with small stacks.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// The stack of threads that only wait and call into the kernel.
const SMALL_STACK_BYTES: usize = 64 * 1024;

/// Everything here stays usable when a thread panicked with a lock held: the data is consistent between calls.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread that needs little stack.
///
/// # Errors
/// What the system says.
pub fn spawn_small(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<thread::Thread> {
    let builder = thread::Builder::new().name(name.to_owned()).stack_size(SMALL_STACK_BYTES);
    builder.spawn(f).map(|handle| handle.thread().clone())
}
