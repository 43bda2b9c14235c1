//! Threads for handlers whose futures are not `Send`, as with an `Rc` held across an `.await`.

use super::calls::{self, LocalCallFuture};
use super::connection::TaskConnection;
use crate::runtime::input::Incoming;
use crate::runtime::process::fatal;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::task::{spawn_local, LocalSet};

type Job = (u32, Incoming, TaskConnection);
type LocalHandler = &'static (dyn Fn(Incoming) -> LocalCallFuture + Sync);

/// Threads, as many as there are cores, each with its own tasks.
pub struct Threads {
    jobs: Vec<UnboundedSender<Job>>,
    next: AtomicUsize,
}

impl Threads {
    /// Starts the threads.
    pub fn start(handler: LocalHandler) -> Self {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let jobs = (0..cores).map(|_| start_thread(handler)).collect();
        Threads { jobs, next: AtomicUsize::new(0) }
    }

    /// Makes a call on the thread whose turn it is.
    pub fn call(&self, number: u32, incoming: Incoming, connection: TaskConnection) {
        let turn = self.next.fetch_add(1, Relaxed) % self.jobs.len();
        // The threads never end, so this never fails.
        let _ = self.jobs[turn].send((number, incoming, connection));
    }
}

fn start_thread(handler: LocalHandler) -> UnboundedSender<Job> {
    let (sender, jobs) = unbounded_channel();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap_or_else(|error| fatal(&format!("cannot start tokio: {error}")));
    let started = thread::Builder::new().name("handler".to_owned()).spawn(move || {
        LocalSet::new().block_on(&runtime, work(handler, jobs));
    });
    if let Err(error) = started {
        fatal(&format!("cannot start a thread: {error}"));
    }
    sender
}

async fn work(handler: LocalHandler, mut jobs: UnboundedReceiver<Job>) {
    while let Some((number, incoming, connection)) = jobs.recv().await {
        spawn_local(calls::serve(handler, number, incoming, connection));
    }
}
