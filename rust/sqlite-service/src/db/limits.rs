//! What one statement cannot use up: the disk, memory, and time.
use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use edge_service::memory::give_back_small_blocks;

use crate::link::Ticket;

const MIB: u64 = 1024 * 1024;
/// Less than this stays for other statements.
const GIVEN_BACK_BYTES: i64 = 32 * 1024 * 1024;
/// Changes that stay in the WAL until it is checkpointed: 1000 pages of at most 64 KiB.
const UNCHECKPOINTED_MB: u64 = 64;
/// How long to wait for a lock of another program.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BUSY_PAUSE: Duration = Duration::from_millis(20);

/// The sizes that the files of a database may have.
#[derive(Clone, Debug)]
pub struct FileLimits {
    wal: PathBuf,
    /// The database itself, MiB.
    pub database_mb: u64,
    /// Each file that is written, MiB: the database, its WAL and temporary files. A WAL has the last changes and, in a
    /// large transaction, all pages, each with a header of up to 5 %.
    pub any_mb: u64,
}

impl FileLimits {
    /// A database that is larger already has to remain writable, so that it can become smaller.
    pub fn new(path: &Path, max_size_mb: u64) -> Self {
        let present = fs::metadata(path).map_or(0.0, |metadata| metadata.len() as f64 / MIB as f64);
        let largest = (present.max(max_size_mb as f64) * 1.05).ceil() as u64;
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        Self { wal: wal.into(), database_mb: max_size_mb, any_mb: largest + UNCHECKPOINTED_MB }
    }

    /// Has the kernel enforce it. Writes beyond it fail.
    pub fn enforce(&self) {
        let bytes = self.any_mb.saturating_mul(MIB);
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: they take numbers and a place of the right type. Where the limit cannot be set, a lower one that was
        // inherited is in force.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0 {
                limit.rlim_cur = limit.rlim_max.min(bytes);
                libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
            }
        }
    }

    /// Whether the last write has failed at the limit.
    pub fn is_wal_full(&self) -> bool {
        fs::metadata(&self.wal).is_ok_and(|metadata| metadata.len() > (self.any_mb - 1).saturating_mul(MIB))
    }
}

/// Limits the memory of SQLite in this process.
pub fn limit_heap(bytes: usize) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    // SAFETY: takes a number.
    unsafe { rusqlite::ffi::sqlite3_hard_heap_limit64(bytes) };
}

/// Gives back the memory of large statements, which is in small blocks. It is called after statements.
pub fn give_back_memory() {
    // SAFETY: they take numbers.
    let freed = unsafe { rusqlite::ffi::sqlite3_memory_highwater(1) - rusqlite::ffi::sqlite3_memory_used() };
    if freed > GIVEN_BACK_BYTES {
        give_back_small_blocks();
    }
}

thread_local! {
    /// The call whose statement is running.
    static CURRENT: RefCell<Option<Arc<Ticket>>> = const { RefCell::new(None) };
    static LOCKED_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs the statement of a call, which ends it when it is aborted.
pub fn abortable<R>(ticket: Arc<Ticket>, work: impl FnOnce() -> R) -> R {
    CURRENT.set(Some(ticket));
    let result = work();
    CURRENT.set(None);
    result
}

/// Whether the statement that is running is to end.
pub fn is_aborted() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|ticket| ticket.is_aborted()))
}

/// Waits for a lock of another program. Returns whether it is worth to try again.
pub fn wait_for_lock(tries: i32) -> bool {
    let since = if tries == 0 { Instant::now() } else { LOCKED_SINCE.get().unwrap_or_else(Instant::now) };
    LOCKED_SINCE.set(Some(since));
    if is_aborted() || since.elapsed() >= BUSY_TIMEOUT {
        return false;
    }
    thread::sleep(Duration::from_millis(1 + u64::try_from(tries).unwrap_or(0)).min(MAX_BUSY_PAUSE));
    true
}
