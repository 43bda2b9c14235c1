//! What the actor host asks of this process, over the channel that Node opens to a child process.
mod channel;
mod messages;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::OwnedReadHalf;
use tokio::task::spawn_local;

use crate::backend::{Backend, Connection, Limits, RoundTrip};
use crate::error::CallError;
use crate::log::{Level, Log};
use crate::serve::{Listener, ServeRequest, ServedService};
use channel::Channel;
use messages::{Answer, FromService, Request, TestRequest, TestResult, ToService, Work, shortened};

const BLOCKING_THREADS: usize = 4;
const STACK_BYTES: usize = 512 * 1024;

/// Does what the actor host asks for, until it has ended.
pub fn run<B: Backend>() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // These threads look up names, which cannot be aborted. Each counts against the memory of the process.
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_stack_size(STACK_BYTES)
        .build_local(Default::default());
    if let Err(error) = runtime.and_then(|runtime| runtime.block_on(converse::<B>())) {
        eprintln!("Error: {error}");
        std::process::exit(1);
    }
    std::process::exit(0);
}

async fn converse<B: Backend>() -> io::Result<()> {
    let (channel, reader) = Channel::open()?;
    let process = Rc::new(Process::<B> { channel, served: RefCell::default() });
    // An error is the end of the actor host, too.
    let _ = process.listen(reader).await;
    Ok(())
}

struct Process<B: Backend> {
    channel: Rc<Channel>,
    served: RefCell<Option<Rc<ServedService<B>>>>,
}

impl<B: Backend> Process<B> {
    async fn listen(self: &Rc<Self>, reader: OwnedReadHalf) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(4 * 1024, reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).await? > 0 {
            match serde_json::from_slice(&line) {
                Ok(message) => self.take(message).await,
                // What Node tells itself.
                Err(_) if is_internal(&line) => {}
                Err(error) => self.channel.fail(format!("a request cannot be read: {error}")),
            }
            // The first request may be large, and is the only one that is.
            line = Vec::new();
        }
        Ok(())
    }

    /// Requests that take long do not keep others waiting.
    async fn take(self: &Rc<Self>, ToService { number, request }: ToService<B::Config>) {
        let served = self.served.borrow().clone();
        match request {
            Request::Serve(work) => match self.serve(*work).await {
                Ok(()) => self.answer(number, Answer::default()),
                Err(error) => self.channel.fail(error.to_string()),
            },
            Request::Test(work) => {
                let process = self.clone();
                spawn_local(async move {
                    let tested = Some(process.test(*work).await);
                    process.answer(number, Answer { tested, ..Answer::default() });
                });
            }
            Request::Bind { bindings } => {
                if let Some(served) = served {
                    served.bind(&bindings);
                }
                self.answer(number, Answer::default());
            }
            Request::Ping => self.answer(number, Answer::default()),
            Request::Measure => {
                let figures = served.map(|served| served.take_figures());
                self.answer(number, Answer { figures, ..Answer::default() });
            }
            Request::Drain { limit_ms } => {
                // An infinite or negative limit would be a mistake of the actor host, not a reason to panic.
                let limit = limit_ms.map(|ms| Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default());
                spawn_local(self.clone().drain(number, served, limit));
            }
        }
    }

    async fn serve(&self, work: Work<B::Config, ServeRequest>) -> io::Result<()> {
        let (of_state, of_figures) = (self.channel.clone(), self.channel.clone());
        let listener = Listener {
            on_state: Box::new(move |state| {
                let state = shortened(serde_json::to_value(state).unwrap_or_default());
                of_state.send(&FromService::State { state });
            }),
            on_figures_due: Box::new(move |figures| of_figures.send(&FromService::Figures { figures: &figures })),
        };
        let log = self.relayed_log(work.logs_debug);
        let limits = work.limits(work.rest.memory_bytes as usize);
        let served = ServedService::start(work.rest, work.config, limits, log, listener).await?;
        *self.served.borrow_mut() = Some(served);
        Ok(())
    }

    async fn test(&self, work: Work<B::Config, TestRequest>) -> TestResult {
        // A test holds one answer.
        let limits = work.limits(4 * work.answer_bytes);
        TestResult::of(test::<B>(work.config, limits, Duration::from_millis(work.rest.timeout_ms)).await)
    }

    /// Answers when calls in progress have ended; the process ends when all handlers have left.
    async fn drain(self: Rc<Self>, number: u64, served: Option<Rc<ServedService<B>>>, limit: Option<Duration>) {
        let Some(served) = served else {
            self.answer(number, Answer::default());
            return self.channel.exit(0);
        };
        served.drain(limit).await;
        self.answer(number, Answer { figures: Some(served.take_figures()), ..Answer::default() });
        served.left().await;
        self.channel.exit(0);
    }

    fn answer(&self, number: u64, answer: Answer) {
        self.channel.send(&FromService::Answer { number, answer });
    }

    /// A log that the actor host writes, with its other lines of this service.
    fn relayed_log(&self, logs_debug: bool) -> Log {
        let channel = self.channel.clone();
        Log::new(move |level, details: Value, message| {
            if level != Level::Debug || logs_debug {
                channel.send(&FromService::Log { level, details: shortened(details), message });
            }
        })
    }
}

fn is_internal(line: &[u8]) -> bool {
    let message: Result<Value, _> = serde_json::from_slice(line);
    message.is_ok_and(|message| message["cmd"].as_str().is_some_and(|command| command.starts_with("NODE_")))
}

/// Opens a connection, makes one round trip, and closes it.
async fn test<B: Backend>(config: B::Config, limits: Limits, timeout: Duration) -> Result<RoundTrip, CallError> {
    let mut opened = B::new(config, limits).open(timeout, |_| {}).await?;
    let connection = opened.take();
    if let Some(connection) = connection {
        connection.close();
        connection.closed().await;
    }
    Ok(opened.round_trip.clone())
}
