//! A request whose head has been read: its endpoint, its head for the handler, and what policies say so far.
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::client::Link;
use super::guard::Phase;
use super::handler_head;
use super::stream::Broken;
use super::upgrade::{self, Upgrade};
use crate::challenges;
use crate::client_ip::HTTP;
use crate::endpoint_state::EndpointState;
use crate::messages::{FromFront, Serving};
use crate::policies::{self, Identity, Judged, KeyWait, Patience, Policies};
use crate::request::{Framing, Head, MAX_HEADERS, Refusal, RequestSpan, host_name, read_head};
use crate::routes::{Lookup, RouteTable};
use crate::thread::Thread;
use crate::upstream::endpoint::Endpoint;
use crate::upstream::sticky::place_of;

/// How often a request looks whether the key of its token is there.
const KEY_LOOK: Duration = Duration::from_millis(25);

/// A request whose head has been read.
pub struct Request {
    pub id: String,
    pub started: Cell<Instant>,
    /// For so long it has waited until its policies were ready, which is part of its time.
    pub waited: Duration,
    pub framing: Framing,
    pub expects_continue: bool,
    pub is_head: bool,
    pub is_old: bool,
    pub keep_alive: bool,
    pub scheme: &'static str,
    pub to: Result<Addressed, Refusal>,
    /// Of one that asks for a WebSocket, which matters where the handler takes those; or why it gets none.
    pub upgrade: Option<Result<Upgrade, Refusal>>,
}

/// Where a request goes.
pub struct Addressed {
    pub endpoint: Rc<Endpoint>,
    pub state: Arc<EndpointState>,
    /// The head as the handler gets it.
    pub head: Vec<u8>,
    pub span: RequestSpan,
    /// Of a caller that keeps its handler.
    pub place: Option<u32>,
    /// What its policies have found, if it has some.
    pub judged: Option<Box<Judged>>,
}

impl Addressed {
    pub fn policies(&self) -> Option<(&Policies, &Judged)> {
        Some((self.state.policies.as_deref()?, self.judged.as_deref()?))
    }

    /// The longest body that a policy allows, bytes.
    pub fn body_limit(&self) -> Option<usize> {
        self.state.policies.as_ref()?.body_limit
    }

    pub fn identity(&self) -> Option<&Identity> {
        self.judged.as_ref()?.identity.as_deref()
    }
}

impl Request {
    /// Reads a head, and finds its endpoint.
    ///
    /// # Errors
    /// When it is not HTTP, or ambiguous: where the next request begins is not certain.
    pub fn read(
        thread: &Thread,
        bytes: &[u8],
        peer: IpAddr,
        is_secure: bool,
        patience: &mut Patience,
    ) -> Result<Self, Refusal> {
        let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let head = read_head(bytes, &mut space)?;
        let id = head.request_id.map_or_else(|| thread.request_ids.next(), str::to_owned);
        let headers = head.headers.iter().map(|header| (header.name.as_bytes(), header.value));
        let client = thread.proxies.client(peer, is_secure, headers);
        let to = match to_acme(thread, &head).or_else(|| to_tls(&head, client.scheme, thread.settings.redirect_port)) {
            Some(answer) => Err(answer),
            None => address(thread, &head, client.ip, &id, patience),
        };
        let policies = to.as_ref().ok().and_then(|to| to.state.policies.as_deref());
        let upgrade = head.asks_for_socket.then(|| upgrade::read(&head, client.scheme, policies));
        Ok(Self {
            to,
            upgrade,
            scheme: client.scheme,
            started: Cell::new(Instant::now()),
            waited: patience.prepared_for,
            framing: head.framing,
            expects_continue: head.expects_continue,
            is_head: head.method == "HEAD",
            is_old: head.is_old,
            keep_alive: head.keep_alive,
            id,
        })
    }
}

impl Request {
    /// The time that it has.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.to.as_ref().map_or(0, |to| to.state.limits.timeout_ms).into())
    }

    /// Has new keys of the issuer of its token fetched.
    pub fn ask_for_key(&self, thread: &Thread) {
        if let Ok(Addressed { endpoint, .. }) = &self.to {
            thread.supervisor.send(FromFront::UnknownKey { endpoint_id: endpoint.shared.id.to_string() });
        }
    }

    /// Counts it by the rules that do not ask who calls. If there is no more, it is refused.
    pub async fn is_over_limit(&mut self, thread: &Thread, patience: &mut Patience) -> bool {
        let Ok(Addressed { judged: Some(judged), .. }) = &mut self.to else { return false };
        let told = judged.lines.len();
        judged.count_shared_rates(&thread.supervisor).await;
        patience.lines.push_str(&judged.lines[told..]);
        judged.refusal.is_some()
    }

    /// Waits for other policies of its endpoint: those with new keys. False when there are none in time.
    pub async fn gets_other_policies(&self, thread: &Thread, wait: &KeyWait) -> bool {
        let Ok(Addressed { endpoint, state, .. }) = &self.to else { return false };
        let policies = |state: &EndpointState| state.policies.as_ref().map(Arc::as_ptr);
        while !wait.is_over() {
            tokio::time::sleep(KEY_LOOK).await;
            if policies(&endpoint.state()) != policies(state) {
                return true;
            }
            if wait.asks() {
                self.ask_for_key(thread);
            }
        }
        wait.give_up();
        false
    }
}

/// Reads a request; again when its policies have been made ready, when it was counted, and when the key of its token
/// may have come.
pub async fn read_request(link: &impl Link, head: &[u8], peer: IpAddr, thread: &Rc<Thread>) -> Result<Request, Broken> {
    let mut patience = Patience::default();
    loop {
        let mut request = Request::read(thread, head, peer, link.is_secure(), &mut patience)?;
        if let Some(validator) = patience.unprepared.take() {
            link.watch().begin(Phase::Unwatched);
            link.unless_reset(patience.prepare(&validator, request.timeout())).await?;
            continue;
        }
        if std::mem::take(&mut patience.counts_first) {
            link.watch().begin(Phase::Unwatched);
            if request.is_over_limit(thread, &mut patience).await {
                return Ok(request);
            }
            continue;
        }
        let (asks, wait) = patience.take();
        if asks {
            request.ask_for_key(thread);
        }
        let Some(wait) = wait else { return Ok(request) };
        link.watch().begin(Phase::Unwatched);
        if !request.gets_other_policies(thread, &wait).await {
            return Ok(request);
        }
    }
}

/// The answer to an ACME server, which comes before routes and redirects.
fn to_acme(thread: &Thread, head: &Head<'_, '_>) -> Option<Refusal> {
    if !head.target.path_and_query.starts_with(challenges::PREFIX) {
        return None;
    }
    let host = host_name(head.target.authority);
    thread.challenges.answer(head.method, &host, head.target.path()).map(Refusal::challenge)
}

/// The same address over TLS, for a request without it.
fn to_tls(head: &Head<'_, '_>, scheme: &str, redirect_port: Option<u16>) -> Option<Refusal> {
    let port = redirect_port.filter(|_| scheme == HTTP)?;
    let host = host_name(head.target.authority);
    let target = &*head.target.path_and_query;
    (!host.is_empty() && target != "*").then(|| Refusal::insecure(&host, port, target))
}

/// Finds the endpoint of a request, and writes its head for the handler.
fn address(
    thread: &Thread,
    head: &Head<'_, '_>,
    client_ip: IpAddr,
    id: &str,
    patience: &mut Patience,
) -> Result<Addressed, Refusal> {
    let path = head.target.path();
    let routes = thread.routes.borrow();
    let host = host_name(head.target.authority);
    match routes.find(&host, head.method, path) {
        Lookup::Found { target: endpoint, names, values } => {
            let state = endpoint.state();
            let params = names.iter().map(|name| &**name).zip(values.iter().map(|value| &**value));
            let place = place(&state, head);
            let span = thread.trace_ids.begin(head.trace, thread.settings.traces.as_ref());
            let timeout_ms = state.limits.timeout_ms.into();
            let Some(policies) = &state.policies else {
                let head = handler_head::write(head, params, client_ip, id, &span, timeout_ms, None, None);
                return Ok(Addressed { endpoint: endpoint.clone(), state, head, span, place, judged: None });
            };
            let params: Vec<_> = params.collect();
            let shares_rates = thread.settings.shares_rates;
            let judged = Box::new(policies.judge(head, &params, client_ip, patience, shares_rates));
            let identity = judged.identity.as_deref();
            let write = |head: &Head<'_, '_>| {
                handler_head::write(head, params.into_iter(), client_ip, id, &span, timeout_ms, None, identity)
            };
            let written = if policies.changes_request() {
                write(&head.with_headers(&policies.request_headers(head.headers)))
            } else {
                write(head)
            };
            let judged = Some(judged);
            Ok(Addressed { endpoint: endpoint.clone(), state, head: written, span, place, judged })
        }
        // OPTIONS of the server as a whole.
        _ if path == "*" => Err(Refusal::unknown()),
        Lookup::WrongMethod { allow } => Err(without_endpoint(&routes, head, &host, &allow)),
        Lookup::Unknown => Err(Refusal::unknown()),
        Lookup::Malformed => Err(Refusal::malformed("The path of the request is not a valid path.")),
    }
}

/// The path has no endpoint of this method: a question of a browser, or an error that its page may read.
fn without_endpoint(
    routes: &RouteTable<Rc<Endpoint>>,
    head: &Head<'_, '_>,
    host: &str,
    allow: &[&'static str],
) -> Refusal {
    let cors_of = |method: &str| match routes.find(host, method, head.target.path()) {
        Lookup::Found { target, .. } => target.state().policies.as_ref()?.cors.clone(),
        _ => None,
    };
    if let Some(answer) = policies::preflight(head, allow, cors_of) {
        return answer;
    }
    let mut refusal = Refusal::wrong_method(head.method, allow);
    if let Some(cors) = allow.first().and_then(|method| cors_of(method)) {
        cors.add_lines(head, refusal.lines.to_mut());
    }
    refusal
}

/// Where the client of a request stands, if the endpoint keeps callers with their version.
pub fn place(state: &EndpointState, head: &Head<'_, '_>) -> Option<u32> {
    let (Serving::Running { sticky: Some(sticky), .. } | Serving::Asleep { sticky: Some(sticky) }) = &state.serving
    else {
        return None;
    };
    place_of(sticky, head.headers.iter().map(|header| (header.name, header.value)))
}
