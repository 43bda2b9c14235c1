//! Detects connections whose threads are all blocked in handlers, and sends other threads to them.
//!
//! Calls report nothing to the monitor: it polls once a tick. It sleeps while no call runs or all of them wait for what
//! comes on their connection, and the next call wakes it, or one that continues.

use super::gateway_connection::GatewayConnection;
use super::pool::Pool;
use super::process::spawn_or_exit;
use super::threads::lock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);
/// It continues polling this long after the last call, so that steady traffic does not wake it for each request.
const IDLE_TICKS: u32 = 20;

/// The monitor's shared side.
pub struct Monitor {
    watched: Mutex<Vec<Watched>>,
    awake: AtomicBool,
    thread: OnceLock<Thread>,
}

/// A connection, and its state at the last tick.
struct Watched {
    connection: Weak<GatewayConnection>,
    started: u64,
    finished: u64,
    /// How many threads were sent at the last tick; 0 while calls make progress.
    boost: usize,
}

impl Monitor {
    /// A monitor that has not been started.
    pub fn new() -> Self {
        Monitor { watched: Mutex::default(), awake: AtomicBool::new(false), thread: OnceLock::new() }
    }

    /// Starts the thread.
    pub fn start(&'static self, pool: &'static Pool) {
        self.thread.get_or_init(|| spawn_or_exit("monitor", move || self.run(pool)));
    }

    /// Monitors a connection for as long as a thread works on it.
    pub fn watch(&self, connection: &Arc<GatewayConnection>) {
        lock(&self.watched).push(Watched { connection: Arc::downgrade(connection), started: 0, finished: 0, boost: 0 });
    }

    /// Wakes the monitor. Called when a call starts, or stops reading; costs a load, unless the monitor sleeps.
    pub fn wake(&self) {
        if !self.awake.load(SeqCst) && !self.awake.swap(true, SeqCst) {
            if let Some(thread) = self.thread.get() {
                thread.unpark();
            }
        }
    }

    fn run(&self, pool: &'static Pool) {
        let mut quiet_ticks = 0;
        loop {
            if self.check(pool) {
                quiet_ticks = 0;
            } else {
                quiet_ticks += 1;
            }
            if quiet_ticks <= IDLE_TICKS {
                thread::sleep(TICK);
                continue;
            }
            self.awake.store(false, SeqCst);
            // A call may have started between the check and the store, and found the monitor awake.
            if !self.check(pool) {
                while !self.awake.load(SeqCst) {
                    thread::park();
                }
            }
            self.awake.store(true, SeqCst);
            quiet_ticks = 0;
        }
    }

    /// Checks every connection. Whether any is in use.
    fn check(&self, pool: &'static Pool) -> bool {
        let mut busy = false;
        lock(&self.watched).retain_mut(|watched| match watched.connection.upgrade() {
            Some(connection) => {
                busy |= watched.check(&connection, pool);
                true
            }
            None => false,
        });
        busy
    }
}

impl Watched {
    fn check(&mut self, connection: &Arc<GatewayConnection>, pool: &'static Pool) -> bool {
        let (started, finished) = connection.calls();
        let none_started = started == self.started;
        let none_finished = finished == self.finished;
        self.started = started;
        self.finished = finished;
        if connection.has_set_aside() && pool.add(connection) {
            // A thread that waits for something else reads, and works on none of them.
            return true;
        }
        if started == finished || connection.has_reader() {
            self.boost = 0;
            return !none_started || connection.has_set_aside();
        }
        // Every thread of the connection runs a handler: for a whole tick, if none was started since. Threads sent at
        // the last tick have started calls: if still none has finished, they are blocked as well, so send twice as
        // many.
        if none_started || (self.boost > 0 && none_finished) {
            self.boost = (self.boost * 2).max(1);
            for _ in 0..self.boost {
                if !pool.add(connection) {
                    // No thread can be had that would write what the blocked threads have answered before.
                    connection.flush();
                    break;
                }
            }
        } else {
            self.boost = 0;
        }
        true
    }
}
