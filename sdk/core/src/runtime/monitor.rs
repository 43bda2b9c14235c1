//! Notices lanes whose threads are all stuck in handlers, and sends others to them.
//!
//! Nobody tells the monitor anything while requests flow: it looks once a tick. It sleeps for good while nothing can be
//! stuck, and is woken once when that ends.

use super::lane::Lane;
use super::process::spawn_needed;
use super::{lock, Runtime};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);
/// Keep looking this long after the last sign of life, so that steady traffic does not wake the monitor for each request.
const LINGER_TICKS: u32 = 20;

/// The monitor's shared side.
pub struct Monitor {
    watched: Mutex<Vec<Watched>>,
    awake: AtomicBool,
    thread: OnceLock<Thread>,
}

/// A lane, and how it was at the last tick.
struct Watched {
    lane: Weak<Lane>,
    started: u64,
    finished: u64,
    /// How many threads to send next; 0 while all is well.
    boost: usize,
}

impl Monitor {
    /// A monitor that has not been started.
    pub fn new() -> Self {
        Monitor { watched: Mutex::default(), awake: AtomicBool::new(false), thread: OnceLock::new() }
    }

    /// Starts the thread.
    pub fn start(&'static self, runtime: &'static Runtime) {
        self.thread.get_or_init(|| spawn_needed("monitor", move || self.run(runtime)));
    }

    /// Looks after a lane for as long as somebody works on it.
    pub fn watch(&self, lane: &Arc<Lane>) {
        lock(&self.watched).push(Watched { lane: Arc::downgrade(lane), started: 0, finished: 0, boost: 0 });
    }

    /// Tells that a call starts. Costs a load, unless the monitor sleeps.
    pub fn wake(&self) {
        if !self.awake.load(SeqCst) && !self.awake.swap(true, SeqCst) {
            if let Some(thread) = self.thread.get() {
                thread.unpark();
            }
        }
    }

    fn run(&self, runtime: &'static Runtime) {
        let mut quiet_ticks = 0;
        loop {
            if self.look(runtime) {
                quiet_ticks = 0;
            } else {
                quiet_ticks += 1;
            }
            if quiet_ticks <= LINGER_TICKS {
                thread::sleep(TICK);
                continue;
            }
            self.awake.store(false, SeqCst);
            // A call may have started between the look and the store, and found the monitor awake.
            if !self.look(runtime) {
                while !self.awake.load(SeqCst) {
                    thread::park();
                }
            }
            self.awake.store(true, SeqCst);
            quiet_ticks = 0;
        }
    }

    /// One look at every lane. Whether to look again soon.
    fn look(&self, runtime: &'static Runtime) -> bool {
        let mut busy = false;
        lock(&self.watched).retain_mut(|watched| match watched.lane.upgrade() {
            Some(lane) => {
                busy |= watched.look(&lane, runtime);
                true
            }
            None => false,
        });
        busy
    }
}

impl Watched {
    fn look(&mut self, lane: &Arc<Lane>, runtime: &'static Runtime) -> bool {
        let (started, finished) = lane.calls();
        let none_started = started == self.started;
        let none_finished = finished == self.finished;
        self.started = started;
        self.finished = finished;
        if started == finished || lane.is_being_read() {
            self.boost = 0;
            return !none_started;
        }
        // Every thread of the lane runs a handler. All for a whole tick, if none was started in between. Threads sent at
        // the last tick have started calls since: if still nothing finished, they are stuck as well, so send twice as many.
        if none_started || (self.boost > 0 && none_finished) {
            self.boost = (self.boost * 2).max(1);
            for _ in 0..self.boost {
                if !runtime.pool.add(runtime, lane) {
                    // Nobody can come who would send off what the stuck threads have answered before.
                    lane.flush();
                    break;
                }
            }
        } else {
            self.boost = 0;
        }
        true
    }
}
