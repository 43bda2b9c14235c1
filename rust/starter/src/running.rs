//! The processes that run or are being started, so that they can be killed.
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

#[derive(Default)]
pub struct RunningProcesses(Mutex<HashMap<u64, State>>);

enum State {
    Starting,
    /// It is killed as soon as it is there.
    Condemned,
    /// Not reaped: the id is its own.
    Process(Pid),
}

impl RunningProcesses {
    /// A process is about to be started.
    pub fn begin(&self, run: u64) {
        self.lock().insert(run, State::Starting);
    }

    /// It is there. It is killed when that was asked for before.
    pub fn started(&self, run: u64, pid: Pid) {
        // Apart, so that the lock is free again.
        let before = self.lock().insert(run, State::Process(pid));
        if matches!(before, Some(State::Condemned)) {
            self.kill(run);
        }
    }

    /// Kills a process, also one that is being started. One that has ended is not known any more.
    pub fn kill(&self, run: u64) {
        let mut all = self.lock();
        let Some(state) = all.get_mut(&run) else { return };
        match *state {
            // It may have ended, and is reaped later.
            State::Process(pid) => drop(kill(pid, Signal::SIGKILL)),
            State::Starting | State::Condemned => *state = State::Condemned,
        }
    }

    /// A process has ended, and is about to be reaped; or it was not started.
    pub fn end(&self, run: u64) {
        self.lock().remove(&run);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
