//! Work that takes long, on threads of its own, so that connections do not wait for it. Owners take turns, so that one
//! with much work does not hold the others up: it may use as many threads as there are cores, and at least two, and
//! there is one more.
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

const LEAST: usize = 2;
/// One owner leaves one of these to the others.
const PREPARED_AT_A_TIME: usize = 2;
/// Pieces of work of one owner that are done or wait.
const MAX_OF_OWNER: usize = 256;

static OWN_THREADS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(LEAST, usize::from).max(LEAST));
static WORKERS: LazyLock<Option<Runtime>> = LazyLock::new(|| threads(*OWN_THREADS + 1));
/// Threads for what a request needs before it is looked at: that does not wait for checks of other requests.
static PREPARERS: LazyLock<Option<Runtime>> = LazyLock::new(|| threads(PREPARED_AT_A_TIME));
static TURNS_TO_PREPARE: LazyLock<Arc<Turns>> =
    LazyLock::new(|| Turns::new(&PREPARERS, PREPARED_AT_A_TIME - 1, PREPARED_AT_A_TIME));
/// A thread for what is done afterwards: however long that takes, nothing else waits.
static CLEANER: LazyLock<Option<Runtime>> = LazyLock::new(|| threads(1));
static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(|| Turns::new(&WORKERS, *OWN_THREADS, *OWN_THREADS + 1));

/// Nothing but its threads for work that blocks is used. It is never dropped.
fn threads(number: usize) -> Option<Runtime> {
    Builder::new_current_thread().thread_name("work").max_blocking_threads(number).build().ok()
}

/// Does work that nobody waits for, one piece after the other.
pub fn in_background(work: impl FnOnce() + Send + 'static) {
    match CLEANER.as_ref() {
        Some(cleaner) => drop(cleaner.spawn_blocking(work)),
        None => work(),
    }
}

/// Waits for a thread. `None` when so much work of this owner is done or waits already.
pub async fn wait_for_turn(owner: &Arc<str>) -> Option<Turn> {
    TURNS.take(owner).await
}

/// The same, for what requests wait for before they are looked at.
pub async fn wait_for_turn_to_prepare(owner: &Arc<str>) -> Option<Turn> {
    TURNS_TO_PREPARE.take(owner).await
}

type Threads = &'static LazyLock<Option<Runtime>>;

/// Who may use which thread.
struct Turns {
    threads: Threads,
    /// What an owner may use.
    own: usize,
    all: usize,
    state: Mutex<TurnState>,
}

#[derive(Default)]
struct TurnState {
    running: usize,
    latest: u64,
    owners: HashMap<Arc<str>, Owner>,
    /// Owners whose work waits, in the order of their turns.
    order: VecDeque<Arc<str>>,
}

#[derive(Default)]
struct Owner {
    running: usize,
    waiting: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A thread is free for some work of an owner until this is dropped.
pub struct Turn {
    turns: Arc<Turns>,
    owner: Arc<str>,
    number: u64,
}

impl Turns {
    fn new(threads: Threads, own: usize, all: usize) -> Arc<Self> {
        Arc::new(Self { threads, own, all, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(self: &Arc<Self>, owner: &Arc<str>) -> Option<Turn> {
        let (turn, granted) = {
            let mut state = self.state();
            state.latest += 1;
            let number = state.latest;
            let (grants, granted) = oneshot::channel();
            let known = state.owners.entry(owner.clone()).or_default();
            if known.running + known.waiting.len() >= MAX_OF_OWNER {
                return None;
            }
            known.waiting.push_back((number, grants));
            if known.waiting.len() == 1 {
                state.order.push_back(owner.clone());
            }
            self.grant(&mut state);
            (Turn { turns: self.clone(), owner: owner.clone(), number }, granted)
        };
        granted.await.ok()?;
        Some(turn)
    }

    fn grant(&self, state: &mut TurnState) {
        let TurnState { running, owners, order, .. } = state;
        while *running < self.all {
            let may_run = |owner: &Arc<str>| owners.get(owner).is_some_and(|owner| owner.running < self.own);
            let Some(next) = order.iter().position(may_run).and_then(|at| order.remove(at)) else { return };
            let Some(owner) = owners.get_mut(&next) else { continue };
            let Some((_, grants)) = owner.waiting.pop_front() else { continue };
            owner.running += 1;
            *running += 1;
            if !owner.waiting.is_empty() {
                order.push_back(next);
            }
            // Where nobody waits any more, the turn is about to be dropped.
            let _ = grants.send(());
        }
    }
}

impl Turn {
    /// Does work, also when nobody waits for it any more. The turn is given back with what comes of it. `None` when the
    /// system has no thread.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Option<(T, Self)> {
        self.turns.threads.as_ref()?.spawn_blocking(move || (work(), self)).await.ok()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut guard = self.turns.state();
        let state = &mut *guard;
        let Some(owner) = state.owners.get_mut(&self.owner) else { return };
        if let Some(at) = owner.waiting.iter().position(|(number, _)| *number == self.number) {
            owner.waiting.remove(at);
            if owner.waiting.is_empty() {
                state.order.retain(|other| *other != self.owner);
            }
        } else {
            owner.running -= 1;
            state.running -= 1;
        }
        if owner.running == 0 && owner.waiting.is_empty() {
            state.owners.remove(&self.owner);
        }
        self.turns.grant(state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::task::yield_now;

    use super::*;

    fn owner(name: &str) -> Arc<str> {
        name.into()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn one_piece_of_work_does_not_hold_up_another() {
        let (end, ends) = mpsc::channel::<()>();
        let turn_of_long = wait_for_turn(&owner("one")).await.unwrap();
        let long = tokio::spawn(turn_of_long.run(move || ends.recv().is_ok()));
        yield_now().await;
        let other = wait_for_turn(&owner("one")).await.unwrap();
        assert_eq!(other.run(|| 1).await.map(|(outcome, _)| outcome), Some(1));
        end.send(()).unwrap();
        assert!(long.await.unwrap().is_some_and(|(outcome, _)| outcome));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn owners_take_turns_and_one_of_them_leaves_a_thread_to_the_others() {
        let turns = Turns::new(&WORKERS, 2, 3);
        let (one, other, third) = (owner("one"), owner("other"), owner("third"));
        let first = turns.take(&one).await.unwrap();
        let second = turns.take(&one).await.unwrap();
        let waiting = |owner: &Arc<str>, name: &'static str, done: &mpsc::Sender<&'static str>| {
            let (turns, owner, done) = (turns.clone(), owner.clone(), done.clone());
            tokio::spawn(async move {
                let turn = turns.take(&owner).await;
                done.send(name).unwrap();
                drop(turn);
            })
        };
        // The last thread is free, but not for the one that has two.
        let (done, order) = mpsc::channel();
        let mut tasks = vec![waiting(&one, "one 3", &done)];
        yield_now().await;
        let last = turns.take(&other).await.unwrap();
        tasks.push(waiting(&one, "one 4", &done));
        yield_now().await;
        tasks.push(waiting(&third, "third", &done));
        tasks.push(waiting(&other, "other", &done));
        yield_now().await;
        assert!(order.try_recv().is_err());
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(order.try_iter().collect::<Vec<_>>(), ["one 3", "third", "other", "one 4"]);
        drop((second, last));
        assert!(turns.state().owners.is_empty() && turns.state().order.is_empty());
        assert_eq!(turns.state().running, 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn only_so_much_of_an_owner_is_done_or_waits_and_who_gives_up_leaves() {
        let turns = Turns::new(&WORKERS, 1, 2);
        let (one, other) = (owner("one"), owner("other"));
        let running = turns.take(&one).await.unwrap();
        let wait = || {
            let (turns, one) = (turns.clone(), one.clone());
            tokio::spawn(async move { turns.take(&one).await.is_some() })
        };
        let waiting: Vec<_> = (1..MAX_OF_OWNER).map(|_| wait()).collect();
        while turns.state().owners[&one].waiting.len() < waiting.len() {
            yield_now().await;
        }
        assert!(turns.take(&one).await.is_none());
        assert!(turns.take(&other).await.is_some());
        for task in waiting {
            task.abort();
            assert!(task.await.is_err());
        }
        assert!(turns.state().order.is_empty());
        let next = wait();
        yield_now().await;
        drop(running);
        assert!(next.await.unwrap());
        assert!(turns.state().owners.is_empty());
    }
}
