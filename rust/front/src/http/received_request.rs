//! A request whose head has been read: its endpoint, its head for the handler, and what policies say so far.
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use httparse::Header;

use super::client::Link;
use super::handler_head::HandlerHead;
use super::stream::StreamError;
use super::upgrade::{self, Upgrade};
use crate::challenges;
use crate::client_ip::{HTTP, RequestSource};
use crate::endpoint_state::EndpointState;
use crate::guard::Phase;
use crate::messages::{FromFront, Serving};
use crate::policies::{self, Evaluation, Identity, KeyWait, NextStep, Policies, PolicyOutcome};
use crate::request::{Framing, Head, MAX_HEADERS, Refusal, RequestSpan, host_name, read_head};
use crate::routes::{Lookup, RouteTable};
use crate::thread::Thread;
use crate::upstream::endpoint::Endpoint;
use crate::upstream::sticky::place_of;

/// How often a request looks whether the key of its token is there.
const KEY_LOOK: Duration = Duration::from_millis(25);

/// A request whose head has been read.
pub struct ReceivedRequest {
    pub id: String,
    pub started: Cell<Instant>,
    /// How long it has waited until its policies were ready, which is part of its time.
    pub waited: Duration,
    pub framing: Framing,
    pub expects_continue: bool,
    pub method: &'static str,
    /// The path without the query.
    pub path: Box<str>,
    pub client_ip: IpAddr,
    pub is_old: bool,
    pub keep_alive: bool,
    pub scheme: &'static str,
    pub to: Result<Destination, Refusal>,
    /// What a request says that asks for a WebSocket, which matters where the handler takes those; or why it gets none.
    pub upgrade: Option<Result<Upgrade, Refusal>>,
}

/// Where a request goes.
pub struct Destination {
    pub endpoint: Rc<Endpoint>,
    pub state: Arc<EndpointState>,
    /// The head as the handler gets it.
    pub head: Vec<u8>,
    /// The same for a handler that takes WebSockets, of a request that asks for one.
    pub socket_head: Option<Vec<u8>>,
    pub span: RequestSpan,
    /// The place of a caller that keeps its handler, see `upstream/sticky.rs`.
    pub place: Option<u32>,
    /// What the policies of the endpoint say of it, if there are some.
    pub policy_outcome: Option<Box<PolicyOutcome>>,
}

impl Destination {
    pub fn policies(&self) -> Option<(&Policies, &PolicyOutcome)> {
        Some((self.state.policies.as_deref()?, self.policy_outcome.as_deref()?))
    }

    /// The longest body that a policy allows, bytes.
    pub fn body_limit(&self) -> Option<usize> {
        self.state.policies.as_ref()?.body_limit
    }

    pub fn identity(&self) -> Option<&Identity> {
        self.policy_outcome.as_ref()?.identity.as_deref()
    }
}

impl ReceivedRequest {
    /// Finds the endpoint of a request, and evaluates its policies, as far as that can be done now.
    fn new(
        thread: &Thread,
        head: &Head<'_, '_>,
        client: RequestSource,
        id: String,
        evaluation: &mut Evaluation,
    ) -> Self {
        let to = match acme_answer(thread, head)
            .or_else(|| tls_redirect(head, client.scheme, thread.settings.redirect_port))
        {
            Some(answer) => Err(answer),
            None => find_destination(thread, head, client.ip, &id, evaluation),
        };
        let policies = to.as_ref().ok().and_then(|to| to.state.policies.as_deref());
        let upgrade = head.asks_for_socket.then(|| upgrade::read(head, client.scheme, policies));
        Self {
            to,
            upgrade,
            scheme: client.scheme,
            started: Cell::new(Instant::now()),
            waited: evaluation.waited_for_schema,
            framing: head.framing,
            expects_continue: head.expects_continue,
            method: head.method,
            path: head.target.path().into(),
            client_ip: client.ip,
            is_old: head.is_old,
            keep_alive: head.keep_alive,
            id,
        }
    }

    /// Whether its response has no body.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// The time that it has.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.to.as_ref().map_or(0, |to| to.state.limits.timeout_ms).into())
    }

    /// Has the supervisor fetch new keys of the issuer of its token.
    pub fn fetch_keys(&self, thread: &Thread) {
        if let Ok(Destination { endpoint, .. }) = &self.to {
            thread.supervisor.send(FromFront::UnknownKey { endpoint_id: endpoint.shared.id.to_string() });
        }
    }

    /// Has others count it by the rules that do not ask who calls. Returns whether it is refused.
    pub async fn exceeds_rates(&mut self, thread: &Thread, evaluation: &mut Evaluation) -> bool {
        let Ok(Destination { policy_outcome: Some(policy_outcome), .. }) = &mut self.to else { return false };
        let before = policy_outcome.lines.len();
        policy_outcome.count_shared_rates(&thread.supervisor).await;
        evaluation.rate_lines.push_str(&policy_outcome.lines[before..]);
        policy_outcome.refusal.is_some()
    }

    /// Waits for other policies of its endpoint: those with new keys. False when there are none in time.
    pub async fn other_policies_come(&self, thread: &Thread, wait: &KeyWait) -> bool {
        let Ok(Destination { endpoint, state, .. }) = &self.to else { return false };
        let policies = |state: &EndpointState| state.policies.as_ref().map(Arc::as_ptr);
        while !wait.is_over() {
            tokio::time::sleep(KEY_LOOK).await;
            if policies(&endpoint.state()) != policies(state) {
                return true;
            }
            if wait.claim_fetch() {
                self.fetch_keys(thread);
            }
        }
        wait.give_up();
        false
    }
}

/// Reads a request, and does what its policies need before they can be evaluated to their end.
///
/// # Errors
/// When it is not HTTP, or ambiguous: where the next request begins is not certain. Also when the client leaves.
pub async fn read_request(
    link: &impl Link,
    head: &[u8],
    peer: IpAddr,
    thread: &Rc<Thread>,
) -> Result<ReceivedRequest, StreamError> {
    match begin(thread, head, peer, link.is_secure())? {
        (request, None) => Ok(request),
        // Apart, so that other requests need no room for it.
        (request, Some(unfinished)) => Box::pin(unfinished.finish(request, link, thread)).await,
    }
}

/// Reads a head, and evaluates policies for the first time. What is kept of the head comes with it where that was not
/// the last time.
fn begin<'b>(
    thread: &Thread,
    bytes: &'b [u8],
    peer: IpAddr,
    is_secure: bool,
) -> Result<(ReceivedRequest, Option<Box<UnfinishedRequest<'b>>>), Refusal> {
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let head = read_head(bytes, &mut space)?;
    let id = head.request_id.map_or_else(|| thread.request_ids.next(), str::to_owned);
    let headers = head.headers.iter().map(|header| (header.name.as_bytes(), header.value));
    let client = thread.proxies.client(peer, is_secure, headers);
    let mut evaluation = Evaluation::default();
    let request = ReceivedRequest::new(thread, &head, client, id, &mut evaluation);
    let unfinished = match evaluation.next {
        NextStep::Finish => None,
        _ => {
            let (head, headers) = (head.with_headers(&[]), head.headers.to_vec());
            Some(Box::new(UnfinishedRequest { head, headers, client, evaluation }))
        }
    };
    Ok((request, unfinished))
}

/// A request whose policies are not evaluated to their end, because something has to be done first.
struct UnfinishedRequest<'b> {
    /// The head without its headers.
    head: Head<'b, 'b>,
    headers: Vec<Header<'b>>,
    client: RequestSource,
    evaluation: Evaluation,
}

impl UnfinishedRequest<'_> {
    /// Does one step after the other. Each begins with an evaluation that ended early:
    ///
    /// ```text
    /// evaluated --> PrepareSchema --> evaluated    the schemas are ready, or are not waited for any more
    ///           --> CountRates -----> evaluated    but if a rule refuses: received
    ///           --> FindKey --------> evaluated    but if no other keys come: received, and refused
    ///           --> Finish: received
    /// ```
    ///
    /// # Errors
    /// When the client leaves.
    async fn finish(
        mut self: Box<Self>,
        mut request: ReceivedRequest,
        link: &impl Link,
        thread: &Thread,
    ) -> Result<ReceivedRequest, StreamError> {
        loop {
            match std::mem::take(&mut self.evaluation.next) {
                NextStep::Finish => return Ok(request),
                NextStep::PrepareSchema(validator) => {
                    link.watch().begin(Phase::Unwatched);
                    link.until_client_resets(self.evaluation.prepare(&validator, request.timeout())).await?;
                }
                NextStep::CountRates => {
                    link.watch().begin(Phase::Unwatched);
                    if request.exceeds_rates(thread, &mut self.evaluation).await {
                        return Ok(request);
                    }
                }
                NextStep::FindKey { fetches_keys, wait } => {
                    if fetches_keys {
                        request.fetch_keys(thread);
                    }
                    let Some(wait) = wait else { return Ok(request) };
                    link.watch().begin(Phase::Unwatched);
                    if !request.other_policies_come(thread, &wait).await {
                        return Ok(request);
                    }
                }
            }
            // Its endpoint is found again, too: it may have changed meanwhile.
            let head = self.head.with_headers(&self.headers);
            request = ReceivedRequest::new(thread, &head, self.client, request.id, &mut self.evaluation);
        }
    }
}

/// The answer to an ACME server, which comes before routes and redirects.
fn acme_answer(thread: &Thread, head: &Head<'_, '_>) -> Option<Refusal> {
    if !head.target.path_and_query.starts_with(challenges::PREFIX) {
        return None;
    }
    let host = host_name(head.target.authority);
    thread.challenges.answer(head.method, &host, head.target.path()).map(Refusal::challenge)
}

/// The same address over TLS, for a request without it.
fn tls_redirect(head: &Head<'_, '_>, scheme: &str, redirect_port: Option<u16>) -> Option<Refusal> {
    let port = redirect_port.filter(|_| scheme == HTTP)?;
    let host = host_name(head.target.authority);
    let target = &*head.target.path_and_query;
    (!host.is_empty() && target != "*").then(|| Refusal::redirect_to_tls(&host, port, target))
}

/// Finds the endpoint of a request, and writes its head for the handler.
fn find_destination(
    thread: &Thread,
    head: &Head<'_, '_>,
    client_ip: IpAddr,
    id: &str,
    evaluation: &mut Evaluation,
) -> Result<Destination, Refusal> {
    let path = head.target.path();
    let routes = thread.routes.borrow();
    let host = host_name(head.target.authority);
    match routes.find(&host, head.method, path) {
        Lookup::Found { target: endpoint, names, values } => {
            let state = endpoint.state();
            let params = names.iter().map(|name| &**name).zip(values.iter().map(|value| &**value));
            let place = sticky_place(&state, head);
            let span = thread.trace_ids.begin(head.trace, thread.settings.traces.as_ref());
            let write = |head: &Head<'_, '_>, identity: Option<&Identity>, asks_for_socket: bool| {
                let (span, deadline_ms) = (&span, state.limits.timeout_ms.into());
                let params = params.clone();
                let (request_id, attempt) = (id, None);
                HandlerHead {
                    head,
                    params,
                    client_ip,
                    request_id,
                    span,
                    deadline_ms,
                    attempt,
                    identity,
                    asks_for_socket,
                }
                .json()
            };
            let written = |head: &Head<'_, '_>, identity: Option<&Identity>| {
                (write(head, identity, false), head.asks_for_socket.then(|| write(head, identity, true)))
            };
            let ((head, socket_head), policy_outcome) = match &state.policies {
                None => (written(head, None), None),
                Some(policies) => {
                    let shares_rates = thread.settings.shares_rates;
                    let params: Vec<_> = params.clone().collect();
                    let outcome = Box::new(policies.evaluate(head, &params, client_ip, evaluation, shares_rates));
                    let identity = outcome.identity.as_deref();
                    let heads = if policies.changes_request() {
                        written(&head.with_headers(&policies.request_headers(head.headers)), identity)
                    } else {
                        written(head, identity)
                    };
                    (heads, Some(outcome))
                }
            };
            Ok(Destination { endpoint: endpoint.clone(), state, head, socket_head, span, place, policy_outcome })
        }
        // OPTIONS of the server as a whole.
        _ if path == "*" => Err(Refusal::no_endpoint()),
        Lookup::WrongMethod { allow } => Err(without_endpoint(&routes, head, &host, &allow)),
        Lookup::Unknown => Err(Refusal::no_endpoint()),
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
pub fn sticky_place(state: &EndpointState, head: &Head<'_, '_>) -> Option<u32> {
    let (Serving::Running { sticky: Some(sticky), .. } | Serving::Asleep { sticky: Some(sticky) }) = &state.serving
    else {
        return None;
    };
    place_of(sticky, head.headers.iter().map(|header| (header.name, header.value)))
}
