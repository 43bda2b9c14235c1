//! The program around a handler: it speaks frames over a Unix socket with the gateway that started it.
//!
//! [`process`] is the contract with the gateway about the process (socket, readiness, end); [`panics`] keeps a panic to
//! its own request; [`lane`], [`pool`] and [`monitor`] share requests out to threads; `asynchronous` does the same with
//! tokio.

#[cfg(feature = "async")]
pub mod asynchronous;
mod lane;
mod monitor;
mod pace;
pub(crate) mod panics;
mod poll;
mod pool;
mod process;

use crate::{Request, Response};
use lane::Lane;
pub(crate) use process::spawn_small;
use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What all threads of a process share.
struct Runtime {
    handler: fn(Request) -> Response,
    pool: pool::Pool,
    monitor: monitor::Monitor,
    pace: pace::Pace,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

thread_local! {
    /// The lane this thread works for, while it runs a handler.
    static CURRENT_LANE: RefCell<Option<Arc<Lane>>> = const { RefCell::new(None) };
}

/// Serves requests with `handler` until the gateway lets go of the process. What `handler_loop!` expands to.
pub fn run(handler: fn(Request) -> Response) -> ! {
    let process = process::Process::from_environment();
    panics::install_hook();
    let runtime = RUNTIME.get_or_init(|| Runtime {
        handler,
        pool: pool::Pool::new(process.max_threads),
        monitor: monitor::Monitor::new(),
        pace: pace::Pace::default(),
    });
    runtime.monitor.start(runtime);
    let listener = process.listen();
    loop {
        match listener.accept() {
            Ok((stream, _)) => runtime.open_lane(stream),
            Err(error) => process::accept_failed(&error),
        }
    }
}

/// Runs `f`, which is about to wait for something outside the process, and lets another thread take over the connection
/// first, so that no request waits behind this one. Outside a handler it just runs `f`.
///
/// On a thread of tokio's multi-threaded runtime, its other tasks move to another thread; on a runtime of one thread
/// nothing can be done for them.
pub fn blocking<T>(f: impl FnOnce() -> T) -> T {
    if let Some((lane, runtime)) = unread_lane() {
        runtime.call_help(&lane);
    }
    step_aside(f)
}

/// Runs `f`, which is about to wait until the stream has something to read, and probably not for long. Another thread
/// takes over the connection with the gateway only if a request comes before that: waking one costs more than most waits.
pub fn reading<T>(stream: &UnixStream, limit: Duration, f: impl FnOnce() -> T) -> T {
    let Some((lane, runtime)) = unread_lane() else { return step_aside(f) };
    // Answers of calls before this one must not wait with it.
    lane.flush();
    pace::waiting(|| {
        // Where many calls are under way, the next is not far: waiting for it would wake this thread once more.
        if lane.is_busy() || lane.has_request() || lane.has_request_before(stream, limit) {
            runtime.call_help(&lane);
        }
        f()
    })
}

fn step_aside<T>(f: impl FnOnce() -> T) -> T {
    #[cfg(feature = "async")]
    if asynchronous::can_block_in_place() {
        return tokio::task::block_in_place(f);
    }
    pace::waiting(f)
}

/// The lane this thread works for, if no other thread reads it.
#[inline(never)]
fn unread_lane() -> Option<(Arc<Lane>, &'static Runtime)> {
    let lane = CURRENT_LANE.with_borrow(Clone::clone)?;
    (!lane.is_being_read()).then_some((lane, RUNTIME.get()?))
}

impl Runtime {
    fn open_lane(&'static self, stream: std::os::unix::net::UnixStream) {
        let lane = Arc::new(Lane::new(stream));
        self.monitor.watch(&lane);
        // Every connection gets a thread, even beyond the bound: without one it would never be answered.
        if !self.pool.add_always(self, &lane) {
            eprintln!("edge-gateway-sdk: no thread for a new connection; it is closed");
        }
    }

    /// Works for a lane until another thread reads it and nothing is left to do, or its connection is closed.
    fn serve(&'static self, lane: &Arc<Lane>) {
        lane.help_has_come();
        // Whoever called for help may be stuck with answers of others still in the buffer.
        lane.flush();
        CURRENT_LANE.set(Some(lane.clone()));
        while let Some((number, request)) = lane.next() {
            self.monitor.wake();
            let slow = self.pace.is_slow();
            if slow {
                self.call_help(lane);
            } else if self.pool.is_exhausted() {
                // Nobody could come and flush if this call gets stuck.
                lane.flush();
            }
            let response = self.pace.measure(|| panics::catch(self.handler, request));
            lane.answer(number, response, slow);
        }
        CURRENT_LANE.set(None);
    }

    /// Gets another thread for the lane, or sends its ready answers off if there is none to get.
    fn call_help(&'static self, lane: &Arc<Lane>) {
        if lane.help_is_needed() && !self.pool.add(self, lane) {
            lane.help_has_come();
            lane.flush();
        }
    }
}

/// Everything here stays usable when a thread panicked with a lock held: the data is consistent between calls.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
