//! What became of the requests of each endpoint in the last seconds, by version. The supervisor adds it up to minutes.
use std::rc::Rc;
use std::time::SystemTime;

use crate::entries::FinishedRequest;
use crate::messages::{FromFront, Settings};
use crate::thread::Thread;
use crate::upstream::endpoint::Endpoint;

/// How many endpoints one message is about.
const ENDPOINTS_PER_MESSAGE: usize = 500;

/// Counts a finished request.
pub fn count(thread: &Thread, finished: &FinishedRequest<'_>) {
    let FinishedRequest { endpoint, version, status, duration, .. } = *finished;
    if endpoint.interval().count_finished(version, status, duration) {
        thread.counted.borrow_mut().push(Rc::clone(endpoint));
    }
}

/// When the current interval began, in seconds since 1970.
pub fn current(settings: &Settings) -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    now - now % settings.figures_every_seconds
}

/// Tells of an interval, which is over. It began `at`.
pub fn report(thread: &Thread, at: u64) {
    let counted = thread.counted.take();
    for endpoints in counted.chunks(ENDPOINTS_PER_MESSAGE) {
        let interval_of =
            |endpoint: &Rc<Endpoint>| endpoint.interval().take(&endpoint.shared.id, endpoint.shared.in_flight());
        let endpoints = endpoints.iter().map(interval_of).collect();
        thread.supervisor.send(FromFront::Interval { at, endpoints });
    }
}
