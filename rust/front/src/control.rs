//! The main thread: does what the supervisor asks for.
use std::cell::Cell;
use std::collections::HashSet;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_local};

use crate::accept::Acceptor;
use crate::challenges::Challenges;
use crate::client_ip::TrustedProxies;
use crate::endpoint_state::EndpointState;
use crate::event_loop::{Command, ThreadHandle, Update};
use crate::figures::{self, ThreadFigures};
use crate::internal::{InternalRequest, RouteQuery};
use crate::memory::MemoryBudget;
use crate::messages::{EndpointMessage, FromFront, FrontAnswer, Level, Settings, ToFront};
use crate::policies::{self, COUNTS, Texts, now_ms};
use crate::supervisor::{Messages, Supervisor, channel};
use crate::thread::SharedByThreads;
use crate::tls::Tls;
use crate::upstream::{ById, Connector, SharedEndpoint};

/// The descriptors that the supervisor gives this process.
const CHANNEL: RawFd = 3;
const LISTENING_SOCKET: RawFd = 4;
/// The listening socket of TLS; only for a program that has it.
const SECURE_SOCKET: RawFd = 5;
const COUNT_EVERY: Duration = Duration::from_millis(500);

/// Serves until the supervisor stops this process, or ends.
pub fn run(tls: Option<Arc<dyn Tls>>) {
    ignore_signals();
    if let Err(error) = run_loop(tls) {
        eprintln!("Error: {error}");
        std::process::exit(1);
    }
}

fn run_loop(tls: Option<Arc<dyn Tls>>) -> io::Result<()> {
    let channel = inherited(CHANNEL)?;
    let plain = inherited(LISTENING_SOCKET)?;
    let secure = if tls.is_some() { Some(inherited(SECURE_SOCKET)?) } else { None };
    // The launcher connects to handlers where this user cannot: the argument is the descriptor by which it is asked.
    if let Some(argument) = std::env::args().nth(1) {
        Connector::set(inherited(argument.parse().map_err(io::Error::other)?)?);
        // Others have the same user: the fronts before and after this one, and of other gateways.
        nix::sys::prctl::set_dumpable(false)?;
    }
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let stream = net::UnixStream::from(channel);
        stream.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(stream)?.into_split();
        serve(BufReader::new(reader), writer, ListeningSockets { plain, secure }, tls).await
    })
}

/// The supervisor ends this process, also when a signal is sent to the whole process group.
fn ignore_signals() {
    // SAFETY: no handler is installed, and no other thread runs yet.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
    }
}

/// Takes a descriptor over.
fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only; fails for what is no descriptor.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::other("only the supervisor of a gateway starts this program"));
    }
    // SAFETY: it is open, as the call before has shown, and nothing else in this process knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The sockets that clients connect to.
struct ListeningSockets {
    plain: OwnedFd,
    secure: Option<OwnedFd>,
}

async fn serve(
    mut lines: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    sockets: ListeningSockets,
    tls: Option<Arc<dyn Tls>>,
) -> io::Result<()> {
    let Some(ToFront::Configure(settings)) = next_message(&mut lines).await? else {
        return Err(io::Error::other("the first message has to be \"configure\""));
    };
    let (supervisor, messages) = channel();
    let mut control = Control::new(settings, supervisor, sockets, tls)?;
    spawn_local(write(messages, writer, control.is_over.clone()));
    spawn_local(count(control.supervisor.clone(), control.handled.clone()));
    while let Some(message) = next_message(&mut lines).await? {
        control.receive(message);
    }
    Ok(())
}

/// `None` when the supervisor has ended.
async fn next_message(lines: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<ToFront>> {
    let mut line = Vec::new();
    if lines.read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(io::Error::other)
}

/// Bytes written at a time, if there are so many.
const WRITE_BYTES: usize = 256 * 1024;

/// Writes messages. Ends the process after the last one, when it is over.
async fn write(mut messages: Messages, mut writer: OwnedWriteHalf, is_over: Rc<Cell<bool>>) {
    while let Some(message) = messages.next().await {
        let mut lines = Vec::new();
        let mut next = Some(message);
        while let Some(message) = next {
            append(&mut lines, &message);
            next = if lines.len() < WRITE_BYTES { messages.try_next() } else { None };
        }
        let dropped = messages.take_dropped();
        if dropped > 0 {
            let (level, fields) = (Level::Warn, json!({ "dropped": dropped }));
            append(&mut lines, &FromFront::Log { level, fields, message: "log lines came too fast, and were dropped" });
        }
        // The end of the channel is noticed by the reader.
        let _ = writer.write_all(&lines).await;
        if is_over.get() && messages.is_empty() {
            std::process::exit(0);
        }
    }
}

fn append(lines: &mut Vec<u8>, message: &FromFront) {
    // It has no part that JSON does not have.
    let _ = serde_json::to_writer(&mut *lines, message);
    lines.push(b'\n');
}

/// Reports requests that handlers answered.
async fn count(supervisor: Supervisor, handled: Arc<AtomicU64>) {
    loop {
        tokio::time::sleep(COUNT_EVERY).await;
        report_count(&supervisor, &handled);
    }
}

fn report_count(supervisor: &Supervisor, handled: &AtomicU64) {
    let requests = handled.swap(0, Ordering::Relaxed);
    if requests > 0 {
        supervisor.send(FromFront::Handled { requests });
    }
}

struct Control {
    threads: Rc<[ThreadHandle]>,
    acceptor: Rc<Acceptor>,
    /// The sockets, until it listens.
    sockets: Option<ListeningSockets>,
    tls: Option<Arc<dyn Tls>>,
    challenges: Arc<Challenges>,
    /// They end when no connections are accepted any more.
    accepting: Vec<JoinHandle<()>>,
    endpoints: HashSet<ById<Arc<SharedEndpoint>>>,
    handled: Arc<AtomicU64>,
    supervisor: Supervisor,
    /// All is done: the process ends.
    is_over: Rc<Cell<bool>>,
}

impl Control {
    fn new(
        mut settings: Settings,
        supervisor: Supervisor,
        sockets: ListeningSockets,
        tls: Option<Arc<dyn Tls>>,
    ) -> io::Result<Self> {
        if let Some(seed) = settings.rate_seed.take() {
            policies::set_seed(seed);
        }
        policies::set_cache_limit(settings.policy_memory_bytes);
        let settings = Arc::new(settings);
        let shared = SharedByThreads {
            proxies: Arc::new(TrustedProxies::parse(&settings.trusted_proxies).map_err(io::Error::other)?),
            memory: Arc::new(MemoryBudget::new(settings.memory_bytes)),
            handled: Arc::default(),
            supervisor: supervisor.clone(),
            tls: tls.clone(),
            challenges: Arc::default(),
            settings,
        };
        let start = |_| ThreadHandle::start(shared.clone());
        let threads: Rc<[ThreadHandle]> = (0..shared.settings.threads).map(start).collect::<io::Result<_>>()?;
        Ok(Self {
            acceptor: Acceptor::new(threads.clone(), shared.settings.connections_limit, supervisor.clone())?,
            threads,
            sockets: Some(sockets),
            tls,
            challenges: shared.challenges,
            accepting: Vec::new(),
            endpoints: HashSet::new(),
            handled: shared.handled,
            supervisor,
            is_over: Rc::default(),
        })
    }

    fn receive(&mut self, message: ToFront) {
        match message {
            ToFront::Configure(_) => self.supervisor.log(Level::Warn, json!({}), "the front is configured already"),
            ToFront::Apply { seq, upserts, removals, policies } => self.apply(seq, upserts, removals, &policies),
            ToFront::Certificates { seq, certificates } => {
                let problems = self.tls.as_ref().map_or_else(Vec::new, |tls| tls.set_certificates(certificates));
                self.certificates_set(seq, problems);
            }
            ToFront::Challenges { seq, http, tls: certificates } => {
                self.challenges.set(http);
                let problems = self.tls.as_ref().map_or_else(Vec::new, |tls| tls.set_challenges(certificates));
                self.certificates_set(seq, problems);
            }
            ToFront::Listen { seq } => {
                let error = self.listen().err().map(|error| error.to_string());
                self.supervisor.done(FrontAnswer { seq, error, ..FrontAnswer::default() });
            }
            ToFront::Drain { seq, instance_id } => self.when_all(seq, |done| Command::Drain(instance_id, done)),
            ToFront::Metrics { seq } => self.metrics(seq),
            ToFront::Idle { seq, endpoint_ids } => self.idle(seq, &endpoint_ids),
            ToFront::Request { seq, endpoint_id, head, body, attempt } => {
                self.request(seq, InternalRequest { endpoint_id, head, body, attempt });
            }
            ToFront::Route { seq, host, method, path } => self.route(seq, RouteQuery { host, method, path }),
            ToFront::Taken { id, taken } => policies::give_counts(id, taken),
            ToFront::Share { gateways, place } => policies::set_share(gateways, place),
            ToFront::HandOver { seq } => {
                let counts = Some(COUNTS.hand_over(now_ms()));
                self.supervisor.done(FrontAnswer { seq, counts, ..FrontAnswer::default() });
            }
            ToFront::Adopt { counts } => {
                if !COUNTS.adopt(&counts, now_ms()) {
                    self.supervisor.log(Level::Warn, json!({}), "counts of requests cannot be read; they begin anew");
                }
            }
            ToFront::Count { seq, rules } => {
                let taken = policies::count_for_replaced_front(&rules);
                self.supervisor.done(FrontAnswer { seq, taken, ..FrontAnswer::default() });
            }
            ToFront::Stop { seq } => self.stop(seq),
        }
    }

    fn certificates_set(&self, seq: u64, problems: Vec<String>) {
        for problem in problems {
            self.supervisor.log(Level::Warn, json!({ "problem": problem }), "a certificate cannot be used");
        }
        self.supervisor.done(FrontAnswer { seq, ..FrontAnswer::default() });
    }

    fn listen(&mut self) -> io::Result<()> {
        let Some(ListeningSockets { plain, secure }) = self.sockets.take() else { return Ok(()) };
        self.accepting.push(spawn_local(self.acceptor.listen(plain, false)?));
        if let Some(secure) = secure {
            self.accepting.push(spawn_local(self.acceptor.listen(secure, true)?));
        }
        Ok(())
    }

    fn apply(&mut self, seq: u64, upserts: Vec<EndpointMessage>, removals: Vec<String>, texts: &Texts) {
        for id in &removals {
            self.endpoints.remove(id.as_str());
        }
        let with_shared = |(id, state): (Box<str>, EndpointState)| {
            let known = self.endpoints.get(&*id).map(|ById(shared)| shared.clone());
            let shared = known.unwrap_or_else(|| {
                let new = Arc::new(SharedEndpoint::new(id.into()));
                self.endpoints.insert(ById(new.clone()));
                new
            });
            shared.new_state_comes();
            (shared, Arc::new(state))
        };
        let update = Arc::new(Update {
            upserts: upserts
                .into_iter()
                .map(|message| EndpointState::of_message(message, texts))
                .map(with_shared)
                .collect(),
            removals,
        });
        self.when_all(seq, |done| Command::Apply(update.clone(), done));
    }

    /// Tells all threads something, and the supervisor when all have done it.
    fn when_all(&self, seq: u64, command: impl Fn(oneshot::Sender<()>) -> Command) {
        let done = ask(&self.threads, command);
        let supervisor = self.supervisor.clone();
        spawn_local(async move {
            done.all().await;
            supervisor.done(FrontAnswer { seq, ..FrontAnswer::default() });
        });
    }

    fn metrics(&self, seq: u64) {
        let figures = ask(&self.threads, Command::Figures);
        let (supervisor, acceptor) = (self.supervisor.clone(), self.acceptor.clone());
        spawn_local(async move {
            let mut threads = figures.all().await;
            threads.push(ThreadFigures { refused: acceptor.refused(), ..ThreadFigures::default() });
            let metrics = Some(figures::sum(threads, acceptor.connections()));
            supervisor.done(FrontAnswer { seq, metrics, ..FrontAnswer::default() });
        });
    }

    fn idle(&self, seq: u64, endpoint_ids: &[Box<str>]) {
        let idle_ms = |id: &str| self.endpoints.get(id).map(|ById(shared)| shared.idle_ms());
        let idle = Some(endpoint_ids.iter().map(|id| idle_ms(id)).collect());
        self.supervisor.done(FrontAnswer { seq, idle, ..FrontAnswer::default() });
    }

    fn request(&self, seq: u64, request: InternalRequest) {
        let Some(thread) = self.threads.iter().min_by_key(|thread| thread.connections()) else { return };
        let response = thread.request(request);
        let supervisor = self.supervisor.clone();
        spawn_local(async move {
            supervisor.done(FrontAnswer { seq, response: response.await.ok(), ..FrontAnswer::default() });
        });
    }

    /// All threads have the same routes.
    fn route(&self, seq: u64, query: RouteQuery) {
        let Some(thread) = self.threads.first() else { return };
        let (sender, routed) = oneshot::channel();
        thread.send(Command::Route(query, sender));
        let supervisor = self.supervisor.clone();
        spawn_local(async move {
            supervisor.done(FrontAnswer { seq, routed: routed.await.ok(), ..FrontAnswer::default() });
        });
    }

    /// Accepts no more connections, and ends the process when those that are open are closed.
    fn stop(&mut self, seq: u64) {
        self.sockets = None;
        let accepting = std::mem::take(&mut self.accepting);
        self.acceptor.stop();
        let threads = self.threads.clone();
        let (supervisor, handled, is_over) = (self.supervisor.clone(), self.handled.clone(), self.is_over.clone());
        spawn_local(async move {
            for accepting in accepting {
                let _ = accepting.await;
            }
            ask(&threads, Command::Stop).all().await;
            report_count(&supervisor, &handled);
            is_over.set(true);
            supervisor.done(FrontAnswer { seq, ..FrontAnswer::default() });
        });
    }
}

/// Tells all threads something.
fn ask<T>(threads: &[ThreadHandle], command: impl Fn(oneshot::Sender<T>) -> Command) -> Answers<T> {
    let tell = |thread: &ThreadHandle| {
        let (sender, answer) = oneshot::channel();
        thread.send(command(sender));
        answer
    };
    Answers(threads.iter().map(tell).collect())
}

/// The answers of all threads.
struct Answers<T>(Vec<oneshot::Receiver<T>>);

impl<T> Answers<T> {
    async fn all(self) -> Vec<T> {
        let mut all = Vec::with_capacity(self.0.len());
        for answer in self.0 {
            all.extend(answer.await);
        }
        all
    }
}
