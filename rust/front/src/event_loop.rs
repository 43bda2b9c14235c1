//! The event loop of a thread: it does what the main thread commands, serves connections, and checks deadlines.
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use crate::endpoint_state::EndpointState;
use crate::entries;
use crate::figures::ThreadFigures;
use crate::http::serve;
use crate::internal::{self, InternalRequest, RouteQuery};
use crate::intervals;
use crate::messages::{Response, RouteAnswer};
use crate::request::{RequestIds, TraceIds};
use crate::thread::{SharedByThreads, Thread};
use crate::tls::Transport;
use crate::upstream::endpoint::Endpoint;
use crate::upstream::{ById, SharedEndpoint};

/// How often deadlines are checked.
const EXPIRE_EVERY: Duration = Duration::from_millis(100);
/// How often connections are checked: each so many times that deadlines are.
const GUARD_EVERY: u32 = 5;
/// How often it is told how many requests have no entry in the log.
const LEFT_OUT_EVERY: u32 = 10;
/// How long a client that keeps its connection busy can delay the exit of a front. Streams end before that, see
/// `stream_drain_ms`.
const DRAIN_LIMIT: Duration = Duration::from_secs(35);

/// Changed endpoints.
pub struct Update {
    pub upserts: Vec<(Arc<SharedEndpoint>, Arc<EndpointState>)>,
    pub removals: Vec<String>,
}

/// A connection that a client has made.
pub struct AcceptedConnection {
    tcp: TcpStream,
    peer: IpAddr,
    /// Whether it begins with a handshake of TLS.
    is_secure: bool,
}

/// What a thread is told. The senders are told when it is done.
pub enum Command {
    Serve(AcceptedConnection, OpenConnection),
    Apply(Arc<Update>, oneshot::Sender<()>),
    /// When no request is in flight in a replaced instance.
    Drain(u64, oneshot::Sender<()>),
    Figures(oneshot::Sender<ThreadFigures>),
    Request(InternalRequest, OpenConnection, oneshot::Sender<Response>),
    Route(RouteQuery, oneshot::Sender<RouteAnswer>),
    /// When all connections are closed.
    Stop(oneshot::Sender<()>),
}

/// A connection of a client, as long as it is open.
pub struct OpenConnection(Arc<AtomicUsize>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A running thread.
pub struct ThreadHandle {
    commands: UnboundedSender<Command>,
    connections: Arc<AtomicUsize>,
}

impl ThreadHandle {
    /// Starts a thread.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(shared: SharedByThreads) -> io::Result<Self> {
        let (commands, receiver) = mpsc::unbounded_channel();
        let connections = Arc::<AtomicUsize>::default();
        let open = connections.clone();
        let runtime = || {
            // That asks for connections, one at a time.
            Builder::new_current_thread().max_blocking_threads(1).enable_all().build_local(LocalOptions::default())
        };
        let request_ids = RequestIds::new()?;
        let trace_ids = TraceIds::new()?;
        std::thread::Builder::new().name("front".to_owned()).spawn(move || {
            let runtime = runtime().unwrap_or_else(|error| panic!("a thread cannot wait for events: {error}"));
            let thread = Thread::new(shared, request_ids, trace_ids);
            runtime.block_on(EventLoop::new(thread, open).run(receiver));
        })?;
        Ok(Self { commands, connections })
    }

    /// Connections of clients that are open.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn serve(&self, tcp: TcpStream, peer: IpAddr, is_secure: bool) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let accepted = AcceptedConnection { tcp, peer, is_secure };
        self.send(Command::Serve(accepted, OpenConnection(self.connections.clone())));
    }

    /// Sends a request of the gateway itself; the thread does not stop before it is answered.
    pub fn request(&self, request: InternalRequest) -> oneshot::Receiver<Response> {
        let (sender, response) = oneshot::channel();
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.send(Command::Request(request, OpenConnection(self.connections.clone()), sender));
        response
    }

    pub fn send(&self, command: Command) {
        // It runs as long as the process does.
        let _ = self.commands.send(command);
    }
}

struct EventLoop {
    thread: Rc<Thread>,
    /// Connections of clients that are open.
    connections: Arc<AtomicUsize>,
    /// When the current interval of figures began, in seconds since 1970.
    interval: Cell<u64>,
}

impl EventLoop {
    fn new(thread: Rc<Thread>, connections: Arc<AtomicUsize>) -> Rc<Self> {
        let interval = Cell::new(intervals::current(&thread.settings));
        Rc::new(Self { thread, connections, interval })
    }

    async fn run(self: Rc<Self>, mut commands: UnboundedReceiver<Command>) {
        spawn_local(self.clone().tick());
        while let Some(command) = commands.recv().await {
            match command {
                Command::Serve(accepted, open) => self.clone().serve(accepted, open),
                Command::Apply(update, done) => self.apply(&update, done),
                Command::Drain(instance_id, done) => {
                    let pool = self.thread.context.pool.clone();
                    spawn_local(async move {
                        pool.drained(instance_id).await;
                        let _ = done.send(());
                    });
                }
                Command::Figures(done) => {
                    let _ = done.send(self.thread.figures());
                }
                Command::Request(request, open, done) => {
                    let thread = self.thread.clone();
                    spawn_local(async move {
                        let _ = done.send(internal::answer(&thread, request).await);
                        drop(open);
                    });
                }
                Command::Route(query, done) => {
                    let _ = done.send(internal::route(&self.thread, &query));
                }
                Command::Stop(done) => {
                    spawn_local(self.clone().drain(done));
                }
            }
        }
    }

    fn serve(self: Rc<Self>, AcceptedConnection { tcp, peer, is_secure }: AcceptedConnection, open: OpenConnection) {
        // Fails for a connection that the client has closed, and where there are no more descriptors.
        let Ok(tcp) = tokio::net::TcpStream::from_std(tcp) else { return };
        spawn_local(async move {
            let transport = if is_secure { self.secure(tcp).await } else { Some(Transport::Plain(tcp)) };
            if let Some(transport) = transport {
                serve(transport, peer, self.thread.clone()).await;
            }
            drop(open);
        });
    }

    /// The handshake; none when it fails, or takes longer than the head of a request may.
    async fn secure(&self, tcp: tokio::net::TcpStream) -> Option<Transport> {
        let limit = Duration::from_millis(self.thread.settings.head_timeout_ms);
        let handshake = self.thread.tls.as_ref()?.accept(tcp);
        match tokio::time::timeout(limit, handshake).await {
            Ok(Ok(secure)) => Some(Transport::Secure(secure)),
            Ok(Err(_)) | Err(_) => None,
        }
    }

    fn apply(&self, update: &Update, done: oneshot::Sender<()>) {
        for id in &update.removals {
            self.remove(id);
        }
        let mut changes = Vec::new();
        for (shared, state) in &update.upserts {
            changes.extend(self.upsert(shared, state).map(spawn_local));
        }
        if changes.is_empty() {
            let _ = done.send(());
            return;
        }
        spawn_local(async move {
            for change in changes {
                let _ = change.await;
            }
            let _ = done.send(());
        });
    }

    /// The future resolves when requests go to its handlers.
    fn upsert(
        &self,
        shared: &Arc<SharedEndpoint>,
        state: &Arc<EndpointState>,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let mut endpoints = self.thread.endpoints.borrow_mut();
        let known = endpoints.get(&*shared.id).map(|ById(endpoint)| endpoint.clone());
        let endpoint =
            known.clone().unwrap_or_else(|| Endpoint::new(shared.clone(), state.clone(), self.thread.context.clone()));
        if known.as_ref().is_none_or(|known| known.state().address != state.address) {
            if let Some(known) = known {
                self.unroute(&known);
            }
            let address = &state.address;
            if address.routed {
                let mut routes = self.thread.routes.borrow_mut();
                if let Err(error) = routes.add(&address.domain, &address.method, &address.route, endpoint.clone()) {
                    let fields = serde_json::json!({ "endpoint_id": &*shared.id, "error": error.to_string() });
                    self.thread
                        .supervisor
                        .warn_rarely(fields, "the route of an endpoint cannot be read; it is not served");
                }
            }
            endpoints.replace(ById(endpoint.clone()));
        }
        endpoint.set_state(state.clone())
    }

    fn remove(&self, id: &str) {
        let Some(ById(endpoint)) = self.thread.endpoints.borrow_mut().take(id) else { return };
        self.unroute(&endpoint);
        endpoint.close();
    }

    fn unroute(&self, endpoint: &Rc<Endpoint>) {
        let state = endpoint.state();
        let address = &state.address;
        if address.routed {
            let is_it = |target: &Rc<Endpoint>| Rc::ptr_eq(target, endpoint);
            self.thread.routes.borrow_mut().remove(&address.domain, &address.method, &address.route, is_it);
        }
    }

    /// Checks deadlines and connections, again and again.
    async fn tick(self: Rc<Self>) {
        let thread = &self.thread;
        let mut last_guard = Instant::now();
        let stream_drain = Duration::from_millis(thread.settings.stream_drain_ms);
        for count in 1_u32.. {
            tokio::time::sleep(EXPIRE_EVERY).await;
            let now = Instant::now();
            thread.context.pool.expire(now, now.checked_sub(stream_drain));
            thread.sum_handled();
            if count % LEFT_OUT_EVERY == 0 {
                entries::report_left_out(thread);
            }
            let interval = intervals::current(&thread.settings);
            if interval != self.interval.get() {
                intervals::report(thread, self.interval.replace(interval));
            }
            if count % GUARD_EVERY == 0 {
                // Bounded: time in which this process was stopped is not the clients' fault.
                thread.guard.check((now - last_guard).min(2 * GUARD_EVERY * EXPIRE_EVERY));
                last_guard = now;
            }
        }
    }

    /// Finishes what is in flight.
    async fn drain(self: Rc<Self>, done: oneshot::Sender<()>) {
        let thread = &self.thread;
        thread.guard.drain();
        let streams_until = Instant::now() + Duration::from_millis(thread.settings.stream_drain_ms);
        let limit = Instant::now() + DRAIN_LIMIT;
        while self.connections.load(Ordering::Relaxed) > 0 && Instant::now() < limit {
            if Instant::now() >= streams_until {
                thread.context.pool.end_streams();
            }
            tokio::time::sleep(EXPIRE_EVERY / 10).await;
        }
        thread.sum_handled();
        entries::report_left_out(thread);
        intervals::report(thread, self.interval.get());
        let _ = done.send(());
    }
}
