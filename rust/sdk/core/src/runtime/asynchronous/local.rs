//! Threads for handlers whose futures are not `Send`, as with an `Rc` held across an `.await`.

use super::{call, Answers, LocalCall};
use crate::runtime::input::Incoming;
use crate::runtime::process::fatal;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::task::{spawn_local, LocalSet};

type Job = (u32, Incoming, Answers);
type Handler = &'static (dyn Fn(Incoming) -> LocalCall + Sync);

/// As many threads as cores, each with its own tasks.
pub struct Threads {
    jobs: Vec<UnboundedSender<Job>>,
    next: AtomicUsize,
}

impl Threads {
    /// Starts the threads.
    pub fn start(handler: Handler) -> Self {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let jobs = (0..cores).map(|_| start_thread(handler)).collect();
        Threads { jobs, next: AtomicUsize::new(0) }
    }

    /// Makes a call on the thread whose turn it is.
    pub fn call(&self, number: u32, incoming: Incoming, answers: Answers) {
        let turn = self.next.fetch_add(1, Relaxed) % self.jobs.len();
        // The threads never end, so this never fails.
        let _ = self.jobs[turn].send((number, incoming, answers));
    }
}

fn start_thread(handler: Handler) -> UnboundedSender<Job> {
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

async fn work(handler: Handler, mut jobs: UnboundedReceiver<Job>) {
    while let Some((number, incoming, answers)) = jobs.recv().await {
        spawn_local(async move { answers.answer(number, call(handler, incoming).await).await });
    }
}
