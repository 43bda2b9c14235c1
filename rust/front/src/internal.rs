//! Requests of the gateway itself. They come from the supervisor, and go to an endpoint by its id, whatever its host
//! and whether it is enabled. They count like those of clients.
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::entries::{self, FinishedRequest};
use crate::http;
use crate::intervals;
use crate::messages::{Match, Response, RouteAnswer};
use crate::request::{Head, MAX_HEADERS, Refusal, Target, host_name, read_head};
use crate::routes::{Lookup, Params, RouteTable};
use crate::thread::Thread;
use crate::upstream::endpoint::{Endpoint, Failure, HandlerAnswer};
use crate::upstream::{Answer, AnswerBody, End, Reply, RequestBody, StreamedAnswer};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The longest answer that is passed on: it is held in memory several times.
const MAX_SHOWN_BYTES: usize = 4 * 1024 * 1024;
const BAD_PATH: &str = "The path of the request is not a valid path.";
/// How the ids of endpoints begin that exist for a trial of a version only (`src/gateway/invocations.ts`).
const TRIAL: &str = "invocation-";

/// See [`crate::messages::ToFront::Request`].
pub struct InternalRequest {
    pub endpoint_id: Box<str>,
    pub head: String,
    pub body: String,
    pub attempt: Option<u32>,
}

/// A request of a client that could come.
pub struct RouteQuery {
    pub host: String,
    pub method: String,
    pub path: String,
}

/// Sends a request to its endpoint.
pub async fn answer(thread: &Thread, request: InternalRequest) -> Response {
    let started = Instant::now();
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let head = match read_head(request.head.as_bytes(), &mut space) {
        Ok(head) => head,
        Err(refusal) => return refused(&refusal, String::new(), started),
    };
    let id = head.request_id.map_or_else(|| thread.request_ids.next(), str::to_owned);
    let Some(endpoint) = thread.endpoint(&request.endpoint_id) else {
        return refused(&Refusal::no_endpoint(), id, started);
    };
    let answered = ask(thread, &endpoint, &head, &id, &request, started).await;
    let response = match answered {
        Ok(answer) => {
            thread.answered_by_handler();
            // Of a request that was queued, only the outcome is wanted.
            response(&answer, request.attempt.is_none(), id, started)
        }
        Err(refusal) => refused(&refusal, id, started),
    };
    endpoint.count_finished(response.status, started.elapsed());
    response
}

async fn ask(
    thread: &Thread,
    endpoint: &Rc<Endpoint>,
    head: &Head<'_, '_>,
    id: &str,
    request: &InternalRequest,
    started: Instant,
) -> Result<Answer, Refusal> {
    let body = STANDARD.decode(&request.body).map_err(|_| Refusal::malformed("The body is not base64."))?;
    let limit = thread.settings.body_limit;
    if body.len() > limit {
        return Err(Refusal::body_too_large(limit));
    }
    let mut share = endpoint.request_memory(&thread.memory);
    if !share.set(body.len()) {
        return Err(Refusal::out_of_memory());
    }
    let state = endpoint.state();
    let params = params_of(&state.address.method, &state.address.route, head)?;
    let params = params.iter().map(|(name, value)| (&**name, &**value));
    let timeout_ms = u64::from(state.limits.timeout_ms);
    let span = thread.trace_ids.begin(head.trace, thread.settings.traces.as_ref());
    let sent_head = http::HandlerHead {
        head,
        params,
        client_ip: CLIENT,
        request_id: id,
        span: &span,
        deadline_ms: timeout_ms,
        attempt: request.attempt,
        identity: None,
        asks_for_socket: false,
    }
    .json();
    let sent = Arc::new(RequestBody::new(body, Some(share)));
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    let reply = Reply::new(poll_fn(|cx| Poll::Ready(cx.waker().clone())).await);
    let outcome = match endpoint
        .request(&sent_head, &sent, &reply, deadline, http::sticky_place(&state, head), None)
        .await
    {
        Ok(HandlerAnswer::Whole(answer)) => Ok(answer),
        Ok(HandlerAnswer::Streamed(streamed, _active)) => whole(streamed, request.attempt.is_none(), deadline).await,
        Err(failure) => Err(failure),
    };
    let answered = outcome.map_err(|failure| http::refusal_of(failure, thread, endpoint, &state, id));
    if !endpoint.shared.id.starts_with(TRIAL) {
        let (status, bytes) = match &answered {
            Ok(answer) => (answer.head.status, answer.body.as_slice().len()),
            Err(refusal) => (refusal.status, refusal.body().len()),
        };
        let finished = FinishedRequest {
            endpoint,
            request_id: id,
            span: &span,
            method: head.method,
            path: head.target.path(),
            client_ip: CLIENT,
            scheme: "http",
            status,
            bytes,
            duration: started.elapsed(),
            version: reply.version.get(),
            refusal: answered.as_ref().err(),
            cut: None,
            identity: None,
            reported: None,
        };
        intervals::count(thread, &finished);
        entries::report(thread, &finished);
    }
    answered
}

/// Reads a streamed answer to its end. What is not shown is not kept; of what is, a little more than is shown.
async fn whole(streamed: StreamedAnswer, is_shown: bool, deadline: Instant) -> Result<Answer, Failure> {
    let StreamedAnswer { head, mut body } = streamed;
    let mut bytes = Vec::new();
    while bytes.len() <= MAX_SHOWN_BYTES {
        match tokio::time::timeout_at(deadline.into(), body.next()).await {
            Ok(Ok(piece)) => {
                if is_shown {
                    bytes.extend_from_slice(&piece);
                }
                body.consumed(piece.len());
            }
            Ok(Err(End::Complete)) => break,
            Ok(Err(End::Broken(reason))) => return Err(Failure::Aborted(reason)),
            Ok(Err(End::Drained(_))) => return Err(Failure::Unavailable),
            Err(_) => return Err(Failure::Expired),
        }
    }
    Ok(Answer { head, body: AnswerBody { bytes, start: 0, share: None } })
}

/// The parameters of the endpoint's own route.
fn params_of(method: &str, route: &str, head: &Head<'_, '_>) -> Result<BTreeMap<Box<str>, String>, Refusal> {
    let mut routes = RouteTable::new();
    // Otherwise nothing is found.
    let _ = routes.add("*", method, route, ());
    match routes.find("", head.method, head.target.path()) {
        Lookup::Found { names, values, .. } => Ok(named(names, values)),
        Lookup::WrongMethod { allow } => Err(Refusal::wrong_method(head.method, &allow)),
        Lookup::Unknown => Err(Refusal::route_mismatch()),
        Lookup::Malformed => Err(Refusal::malformed(BAD_PATH)),
    }
}

fn named<N: From<Box<str>> + Ord>(names: &[Box<str>], values: Params<'_>) -> BTreeMap<N, String> {
    names.iter().cloned().map(N::from).zip(values.into_iter().map(|value| value.into_owned())).collect()
}

fn response(answer: &Answer, is_shown: bool, request_id: String, started: Instant) -> Response {
    let body = answer.body.as_slice();
    let is_too_long = is_shown && body.len() > MAX_SHOWN_BYTES;
    let lines = if is_shown { &answer.head.lines[..] } else { b"" };
    Response {
        status: answer.head.status,
        headers: lines.split(|&byte| byte == b'\n').filter_map(header_of).collect(),
        body: STANDARD.encode(if is_shown && !is_too_long { body } else { b"" }),
        request_id,
        duration_ms: started.elapsed().as_secs_f64() * 1e3,
        error: is_too_long.then(|| format!("The body has {} bytes; up to {MAX_SHOWN_BYTES} are shown.", body.len())),
    }
}

fn header_of(line: &[u8]) -> Option<(String, String)> {
    let line = String::from_utf8_lossy(line);
    let (name, value) = line.trim_end_matches('\r').split_once(": ")?;
    Some((name.to_ascii_lowercase(), value.to_owned()))
}

fn refused(refusal: &Refusal, request_id: String, started: Instant) -> Response {
    Response {
        status: refusal.status,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: STANDARD.encode(refusal.body()),
        request_id,
        duration_ms: started.elapsed().as_secs_f64() * 1e3,
        error: Some(refusal.message.to_string()),
    }
}

fn refused_route(refusal: &Refusal) -> RouteAnswer {
    RouteAnswer { refusal: Some(refusal.message.to_string()), ..RouteAnswer::default() }
}

/// Where a request would go.
pub fn route(thread: &Thread, RouteQuery { host, method, path }: &RouteQuery) -> RouteAnswer {
    let target = match Target::read(method, path, host) {
        Ok(target) => target,
        Err(refusal) => return refused_route(&refusal),
    };
    let (host, path) = (host_name(target.authority), target.path());
    let mut routes = thread.routes.borrow_mut();
    let (endpoint, found) = match routes.find(&host, method, path) {
        Lookup::Found { target, names, values } => (target.clone(), matched(target, names, values)),
        Lookup::WrongMethod { allow } => {
            return RouteAnswer { allow, disabled: disabled(thread, &host, method, path), ..RouteAnswer::default() };
        }
        Lookup::Malformed => return refused_route(&Refusal::malformed(BAD_PATH)),
        Lookup::Unknown => {
            return RouteAnswer { disabled: disabled(thread, &host, method, path), ..RouteAnswer::default() };
        }
    };
    // What stands behind it is found when it is away; no request comes meanwhile.
    let state = endpoint.state();
    let address = &state.address;
    routes.remove(&address.domain, &address.method, &address.route, |target| Rc::ptr_eq(target, &endpoint));
    let next = match routes.find(&host, method, path) {
        Lookup::Found { target, names, values } => Some(matched(target, names, values)),
        _ => None,
    };
    // It was there.
    let _ = routes.add(&address.domain, &address.method, &address.route, endpoint);
    RouteAnswer { found: Some(found), next, ..RouteAnswer::default() }
}

fn disabled(thread: &Thread, host: &str, method: &str, path: &str) -> Option<Match> {
    let mut routes = RouteTable::new();
    for endpoint in thread.endpoints() {
        let state = endpoint.state();
        let address = &state.address;
        let is_trial = endpoint.shared.id.starts_with(TRIAL);
        if !is_trial && !address.routed && (*address.domain == *host || &*address.domain == "*") {
            let _ = routes.add(&address.domain, &address.method, &address.route, endpoint);
        }
    }
    match routes.find(host, method, path) {
        Lookup::Found { target, names, values } => Some(matched(target, names, values)),
        _ => None,
    }
}

fn matched(endpoint: &Rc<Endpoint>, names: &[Box<str>], values: Params<'_>) -> Match {
    Match { endpoint_id: endpoint.shared.id.to_string(), params: named(names, values) }
}
