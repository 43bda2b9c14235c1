//! How long a call may take.

use std::cell::Cell;
use std::time::Duration;

/// Longer makes no sense for a handler, and keeps the numbers small.
const LONGEST: Duration = Duration::from_secs(3600);

thread_local! {
    static DEADLINE: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Runs `work` with a deadline for each of the calls of services that it makes on this thread: the time from sending a
/// call to its answer, at most an hour. It may be shorter or longer than the one calls have otherwise
/// (`SERVICE_TIMEOUT_MS` of the gateway, 10 s), but not longer than a request may take.
///
/// A call that is not answered in time fails with [`HandlerError::DeadlineExceeded`](crate::HandlerError); what it did
/// in the backend is not known then. Calls within calls of this function have the innermost deadline.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
/// use rust_edge_gateway_sdk_core::services::with_deadline;
/// use std::time::Duration;
///
/// fn report(db: &DbPool) -> Result<DbResult, HandlerError> {
///     with_deadline(Duration::from_secs(25), || db.query("SELECT * FROM large_view", ()))
/// }
/// ```
pub fn with_deadline<T>(deadline: Duration, work: impl FnOnce() -> T) -> T {
    let _restore = Restore(set(deadline));
    work()
}

/// The deadline of calls on this thread, in milliseconds, if one was set.
pub fn current() -> Option<Duration> {
    DEADLINE.get()
}

#[inline(never)]
fn set(deadline: Duration) -> Option<Duration> {
    DEADLINE.replace(Some(deadline.clamp(Duration::from_millis(1), LONGEST)))
}

/// Puts the deadline back that was there before, also when `work` panics.
struct Restore(Option<Duration>);

impl Drop for Restore {
    #[inline(never)]
    fn drop(&mut self) {
        DEADLINE.set(self.0);
    }
}
