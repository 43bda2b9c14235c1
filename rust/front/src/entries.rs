//! Entries of the log for requests: all that fail, and so many others a second for each endpoint. How many were left
//! out is told, too.
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::http::{Refusal, TraceParent};
use crate::messages::{FromFront, RequestEntry};
use crate::thread::Thread;
use crate::upstream::endpoint::Endpoint;

/// The entries of an endpoint in the current second, over all threads.
#[derive(Default)]
pub struct EntryLimit {
    /// The second, and how many entries it has.
    taken: AtomicU64,
    left_out: AtomicU64,
}

/// What there is to say of a finished request.
pub struct Finished<'a> {
    pub endpoint: &'a Rc<Endpoint>,
    pub request_id: &'a str,
    pub trace: &'a TraceParent,
    /// As the handler got it, see `http/handler_head.rs`.
    pub head: &'a [u8],
    pub scheme: &'static str,
    pub status: u16,
    /// Of the body of the response.
    pub bytes: usize,
    pub duration: Duration,
    /// Of the handler.
    pub version: Option<u32>,
    /// Why the front answers instead of the handler.
    pub refusal: Option<&'a Refusal>,
}

impl EntryLimit {
    /// Whether a request has an entry; counts it as left out if not. The second result is true for the first of those.
    fn take(&self, second: u32, limit: u32) -> (bool, bool) {
        let next = |taken: u64| match taken >> 32 == u64::from(second) {
            true if taken as u32 >= limit => None,
            true => Some(taken + 1),
            false if limit == 0 => None,
            false => Some(u64::from(second) << 32 | 1),
        };
        if self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok() {
            return (true, false);
        }
        (false, self.left_out.fetch_add(1, Ordering::Relaxed) == 0)
    }

    /// Requests that were left out since the last call.
    pub fn take_left_out(&self) -> u64 {
        self.left_out.swap(0, Ordering::Relaxed)
    }
}

/// Tells the supervisor of a finished request, if it has an entry.
pub fn report(thread: &Thread, finished: &Finished<'_>) {
    let Finished { endpoint, status, duration, .. } = *finished;
    let settings = &thread.settings;
    let is_kept = status >= 500 || {
        let (is_kept, is_first_left_out) = endpoint.shared.entries.take(second(), settings.log_requests_per_second);
        if is_first_left_out {
            thread.left_out.borrow_mut().push(Arc::clone(&endpoint.shared));
        }
        is_kept
    };
    if !is_kept && !settings.logs_requests {
        return;
    }
    // It was written by this front.
    let Ok(head) = serde_json::from_slice::<Head<'_>>(finished.head) else { return };
    let path = head.target.split('?').next().unwrap_or_default();
    thread.supervisor.request(RequestEntry {
        endpoint_id: endpoint.shared.id.to_string(),
        request_id: finished.request_id.to_owned(),
        trace_id: finished.trace.trace_id().to_owned(),
        method: head.method.into_owned(),
        route: endpoint.state().address.route.to_string(),
        path: path.to_owned(),
        status,
        ms: duration.as_secs_f64() * 1e3,
        bytes: finished.bytes,
        client_ip: head.client_ip.into_owned(),
        scheme: finished.scheme,
        version: finished.version,
        error: finished.refusal.map(|refusal| refusal.logged().into_owned()),
        is_kept,
    });
}

/// Tells how many requests were left out.
pub fn report_left_out(thread: &Thread) {
    for endpoint in thread.left_out.take() {
        let requests = endpoint.entries.take_left_out();
        thread.supervisor.send(FromFront::LeftOut { endpoint_id: endpoint.id.to_string(), requests });
    }
}

/// The part of a head that an entry has.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    target: Cow<'a, str>,
    #[serde(borrow)]
    client_ip: Cow<'a, str>,
}

/// Since the first call.
fn second() -> u32 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    // One more, so that it differs from that of a limit which was never used.
    FIRST.get_or_init(Instant::now).elapsed().as_secs() as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_entries() {
        let limit = EntryLimit::default();
        assert_eq!([(); 4].map(|()| limit.take(7, 2)), [(true, false), (true, false), (false, true), (false, false)]);
        assert_eq!(limit.take(8, 2), (true, false));
        assert_eq!((limit.take_left_out(), limit.take_left_out()), (2, 0));
        assert_eq!(limit.take(9, 0), (false, true));
    }
}
