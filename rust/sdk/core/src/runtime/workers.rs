//! The threads of a process, and which connection each of them works for.

use super::gateway_connection::GatewayConnection;
use super::latency::{self, Latency};
use super::monitor::Monitor;
use super::pool::Pool;
use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What all threads of a process share.
pub struct Workers {
    pub pool: Pool,
    pub monitor: Monitor,
    pub latency: Latency,
}

static WORKERS: OnceLock<Workers> = OnceLock::new();

thread_local! {
    /// The connection this thread works for, while it runs a handler.
    static CURRENT_CONNECTION: RefCell<Option<Arc<GatewayConnection>>> = const { RefCell::new(None) };
}

/// Starts with no thread but that of the monitor, and has at most `max` that `serve` connections.
pub fn start(
    max: usize,
    serve: impl Fn(&'static Workers, &Arc<GatewayConnection>) + Send + Sync + 'static,
) -> &'static Workers {
    let serve_connection = move |connection: &Arc<GatewayConnection>| {
        let Some(workers) = WORKERS.get() else { return };
        CURRENT_CONNECTION.set(Some(connection.clone()));
        serve(workers, connection);
        CURRENT_CONNECTION.set(None);
    };
    let workers = WORKERS.get_or_init(|| Workers {
        pool: Pool::new(max, Box::new(serve_connection)),
        monitor: Monitor::new(),
        latency: Latency::default(),
    });
    workers.monitor.start(&workers.pool);
    workers
}

/// The most threads that there may be, but for connections that would have none.
pub fn max_threads() -> Option<usize> {
    WORKERS.get().map(|workers| workers.pool.max())
}

impl Workers {
    /// Gets another thread for the connection, or flushes its answers if there is none.
    pub fn request_thread(&'static self, connection: &Arc<GatewayConnection>) {
        if connection.claim_thread_request() && !self.pool.add(connection) {
            connection.clear_thread_request();
            connection.flush();
        }
    }
}

/// Runs `f`, which is about to wait for something outside the process, and lets another thread take over the connection
/// first, so that no request waits behind this one. Outside a handler it just runs `f`.
///
/// On a thread of tokio's multi-threaded runtime, its other tasks move to another thread; on a runtime of one thread
/// nothing can be done for them.
pub fn blocking<T>(f: impl FnOnce() -> T) -> T {
    if let Some((connection, workers)) = connection_without_reader() {
        workers.request_thread(&connection);
    }
    block_thread(f)
}

/// Runs `f`, which is about to wait until the stream has something to read, and probably not for long. Another thread
/// takes over the connection with the gateway only if a request comes before that: waking one costs more than most
/// waits.
pub fn reading<T>(stream: &UnixStream, limit: Duration, f: impl FnOnce() -> T) -> T {
    let Some((connection, workers)) = connection_without_reader() else { return block_thread(f) };
    // Answers of calls before this one must not wait with it.
    connection.flush();
    latency::waiting(|| {
        // Where many calls are under way, another comes soon: waiting for it would wake this thread once more.
        if connection.is_busy() || connection.has_request() || connection.has_request_before(stream, limit) {
            workers.request_thread(&connection);
        }
        f()
    })
}

fn block_thread<T>(f: impl FnOnce() -> T) -> T {
    #[cfg(feature = "async")]
    if can_block_in_place() {
        return tokio::task::block_in_place(f);
    }
    latency::waiting(f)
}

/// Whether this thread belongs to a runtime that can move its other tasks to another thread.
#[cfg(feature = "async")]
fn can_block_in_place() -> bool {
    use tokio::runtime::{Handle, RuntimeFlavor};
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// The connection this thread works for, if no other thread reads it.
#[inline(never)]
fn connection_without_reader() -> Option<(Arc<GatewayConnection>, &'static Workers)> {
    let connection = CURRENT_CONNECTION.with_borrow(Clone::clone)?;
    (!connection.has_reader()).then_some((connection, WORKERS.get()?))
}
