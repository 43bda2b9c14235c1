//! Work that takes long, on threads of its own, so that connections do not wait for it. There are as many for the whole
//! front as there are cores, and at least two: one long piece of work does not hold all others up.
use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

const LEAST: usize = 2;

/// Nothing but its threads for work that blocks is used. It is never dropped.
static WORKERS: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(LEAST, usize::from);
    Builder::new_current_thread().thread_name("work").max_blocking_threads(cores.max(LEAST)).build().ok()
});

/// Does work, in its turn. It is done also when nobody waits for it any more. `None` when the system has no thread.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    WORKERS.as_ref()?.spawn_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn one_piece_of_work_does_not_hold_up_another() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (end, ends) = mpsc::channel::<()>();
            let long = tokio::spawn(run(move || ends.recv().is_ok()));
            tokio::task::yield_now().await;
            assert_eq!(run(|| 1).await, Some(1));
            end.send(()).unwrap();
            assert_eq!(long.await.unwrap(), Some(true));
        });
    }
}
