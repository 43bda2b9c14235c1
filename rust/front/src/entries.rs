//! Entries of the log for requests: all that fail, and so many others a second for each endpoint, with as many that a
//! policy has something to report of. How many were left out is told, too: also of those that fail, should the
//! supervisor not keep up.
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::messages::{EntrySpan, FromFront, RequestEntry};
use crate::policies::Identity;
use crate::request::{Refusal, RequestSpan};
use crate::thread::Thread;
use crate::upstream::endpoint::Endpoint;

/// What there is to say of a finished request.
pub struct FinishedRequest<'a> {
    pub endpoint: &'a Rc<Endpoint>,
    pub request_id: &'a str,
    pub span: &'a RequestSpan,
    pub method: &'static str,
    /// The path without the query.
    pub path: &'a str,
    pub client_ip: IpAddr,
    pub scheme: &'static str,
    pub status: u16,
    /// The length of the body of the response.
    pub bytes: usize,
    pub duration: Duration,
    /// The version of the handler.
    pub version: Option<u32>,
    /// Why the front answers instead of the handler.
    pub refusal: Option<&'a Refusal>,
    /// Why the response has no end.
    pub cut: Option<&'a str>,
    /// Who sent it, as a policy has found.
    pub identity: Option<&'a Identity>,
    /// What a policy has found wrong with a request that it let through.
    pub reported: Option<&'a str>,
}

/// Tells the supervisor of a finished request, if it has an entry.
pub fn report(thread: &Thread, finished: &FinishedRequest<'_>) {
    let FinishedRequest { endpoint, status, duration, .. } = *finished;
    let settings = &thread.settings;
    let has_failed = status >= 500;
    let leave_out = || {
        if endpoint.shared.entries().leave_out(has_failed) {
            thread.left_out.borrow_mut().push(Arc::clone(&endpoint.shared));
        }
    };
    let may_have_one = || {
        let limit = settings.log_requests_per_second;
        endpoint.shared.entries().take(finished.reported.is_some(), current_second(), limit)
    };
    let is_kept = has_failed || may_have_one();
    if !is_kept {
        leave_out();
        if !settings.logs_requests && !finished.span.is_recorded {
            return;
        }
    }
    let is_taken = thread.supervisor.log_request(RequestEntry {
        endpoint_id: endpoint.shared.id.to_string(),
        request_id: finished.request_id.to_owned(),
        trace_id: finished.span.own.trace_id().to_owned(),
        span: span_of(finished.span),
        method: finished.method.to_owned(),
        route: endpoint.state().address.route.to_string(),
        path: finished.path.to_owned(),
        status,
        ms: duration.as_secs_f64() * 1e3,
        bytes: finished.bytes,
        client_ip: finished.client_ip.to_string(),
        scheme: finished.scheme,
        version: finished.version,
        error: finished.refusal.map(|refusal| refusal.logged().into_owned()).or(finished.cut.map(str::to_owned)),
        policy: finished.refusal.and_then(|refusal| refusal.policy),
        subject: finished.identity.and_then(|identity| identity.subject.clone()),
        key_label: finished.identity.and_then(|identity| identity.key_label.clone()),
        reported: finished.reported.map(str::to_owned),
        is_kept,
    });
    if is_kept && !is_taken {
        leave_out();
    } else if !is_taken {
        thread.supervisor.count_dropped();
    }
}

/// Only of a trace that somebody knows of.
fn span_of(RequestSpan { own, client, is_recorded }: &RequestSpan) -> Option<EntrySpan> {
    (*is_recorded || client.is_some()).then(|| EntrySpan {
        id: own.parent_id().to_owned(),
        parent_id: client.as_ref().map(|client| client.parent_id().to_owned()),
        is_recorded: *is_recorded,
        ended_us: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64,
    })
}

/// Tells how many requests were left out.
pub fn report_left_out(thread: &Thread) {
    for endpoint in thread.left_out.take() {
        let (requests, failed) = endpoint.entries().take_left_out();
        thread.supervisor.send(FromFront::LeftOut { endpoint_id: endpoint.id.to_string(), requests, failed });
    }
}

/// Since the first call.
fn current_second() -> u32 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    // One more, so that it differs from that of a limit which was never used.
    FIRST.get_or_init(Instant::now).elapsed().as_secs() as u32 + 1
}
