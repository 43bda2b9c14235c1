//! Deadlines of calls. Nearly all calls end before theirs, so that one timer serves all of them: it is set for the
//! earliest, and left alone when that call ends. A timer of the runtime for each call would cost a system call.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep_until};

/// Longer limits count as this one.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Unique, and in the order in which they are over.
type Key = (Instant, u64);

#[derive(Default)]
pub struct Deadlines {
    waiting: RefCell<BTreeMap<Key, Option<Waker>>>,
    last: Cell<u64>,
    /// What the timer is set for.
    rings_at: Cell<Option<Instant>>,
    is_earlier: Notify,
}

impl Deadlines {
    /// Starts the timer, which never ends.
    pub fn start() -> Rc<Self> {
        let deadlines = Rc::new(Self::default());
        spawn_local(deadlines.clone().keep());
        deadlines
    }

    /// What the work results in; `None` when it was dropped because it took too long.
    pub async fn within<W: Future>(&self, limit: Duration, work: W) -> Option<W::Output> {
        let mut work = pin!(work);
        let mut entry = None;
        poll_fn(|context| {
            if let Poll::Ready(result) = work.as_mut().poll(context) {
                return Poll::Ready(Some(result));
            }
            let Entry { key, .. } = entry.get_or_insert_with(|| self.enter(limit));
            match self.waiting.borrow_mut().get_mut(key) {
                None => Poll::Ready(None),
                Some(Some(known)) if known.will_wake(context.waker()) => Poll::Pending,
                Some(waker) => {
                    *waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn enter(&self, limit: Duration) -> Entry<'_> {
        let at = Instant::now() + limit.min(NEVER);
        self.last.set(self.last.get().wrapping_add(1));
        let key = (at, self.last.get());
        self.waiting.borrow_mut().insert(key, None);
        if self.rings_at.get().is_none_or(|rings_at| at < rings_at) {
            self.rings_at.set(Some(at));
            self.is_earlier.notify_one();
        }
        Entry { deadlines: self, key }
    }

    async fn keep(self: Rc<Self>) {
        loop {
            let first = self.waiting.borrow().first_key_value().map(|((at, _), _)| *at);
            self.rings_at.set(first);
            match first {
                None => self.is_earlier.notified().await,
                Some(at) => tokio::select! {
                    () = sleep_until(at) => self.ring(),
                    () = self.is_earlier.notified() => {}
                },
            }
        }
    }

    /// Wakes those whose deadline is over.
    fn ring(&self) {
        let now = Instant::now();
        let mut waiting = self.waiting.borrow_mut();
        while let Some(first) = waiting.first_entry().filter(|first| first.key().0 <= now) {
            if let Some(waker) = first.remove() {
                waker.wake();
            }
        }
    }
}

/// Work in progress.
struct Entry<'a> {
    deadlines: &'a Deadlines,
    key: Key,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.deadlines.waiting.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::runtime::Builder;
    use tokio::time::sleep;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn work_ends_at_its_deadline() {
        let runtime = Builder::new_current_thread().enable_time().build_local(Default::default()).unwrap();
        runtime.block_on(async {
            let deadlines = Deadlines::start();
            assert_eq!(deadlines.within(Duration::ZERO, ready(1)).await, Some(1));
            assert_eq!(deadlines.within(Duration::MAX, sleep(SHORT)).await, Some(()));
            let since = Instant::now();
            let late = deadlines.within(SHORT * 2, pending::<()>());
            let early = deadlines.within(SHORT, pending::<()>());
            let in_time = deadlines.within(SHORT * 3, sleep(SHORT / 2));
            assert_eq!(tokio::join!(late, early, in_time), (None, None, Some(())));
            assert!(since.elapsed() >= SHORT * 2);
            assert!(deadlines.waiting.borrow().is_empty());
        });
    }
}
