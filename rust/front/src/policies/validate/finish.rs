//! Checks what is left of a request when its body is there, in its turn where that may take long.
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout_at;

use super::ready::{PartialCheck, Ready};
use super::stop::StopOnDrop;
use super::validator::Validator;
use super::verdict::{CheckSkipped, Verdict};
use crate::memory::MemoryShare;
use crate::workers::{self, Turn};

/// What is read of a body may have so much in memory without asking for it.
const FREE_BYTES: usize = 4 * 1024;
/// How often a check looks whether there is memory for it.
pub(super) const MEMORY_LOOK: Duration = Duration::from_millis(25);

/// Which thread checks a request.
enum CheckedBy {
    This(Arc<Ready>),
    Worker(Turn),
}

/// Checks what is left of a request without keeping others waiting. `memory` is for what is read of it, `owner` is its
/// endpoint. A check that nobody waits for any more ends soon.
///
/// # Errors
/// When it cannot be checked.
pub async fn finish<B: AsRef<[u8]> + Send + Sync + 'static>(
    validator: &Arc<Validator>,
    partial: PartialCheck,
    body: Arc<B>,
    mut memory: MemoryShare,
    owner: &Arc<str>,
    deadline: Instant,
) -> Result<Verdict, CheckSkipped> {
    let (kind, length) = (partial.body, (*body).as_ref().len());
    let (head_room, has_kept) = (partial.room(), partial.kept.is_some());
    let (_stop_on_drop, stop) = StopOnDrop::new();
    let mut lacks_memory = false;
    let check = async {
        let mut room = None;
        loop {
            // Looked at anew each time, and not held while memory is waited for: others may need what it takes.
            let by = match validator.ready_for(length).filter(|_| !has_kept) {
                Some(ready) => CheckedBy::This(ready),
                None => CheckedBy::Worker(workers::wait_for_turn(owner).await.ok_or(CheckSkipped::Busy)?),
            };
            let by = match (room, by) {
                (None, CheckedBy::Worker(turn)) => {
                    let body = body.clone();
                    let (found, turn) =
                        turn.run(move || kind.room((*body).as_ref())).await.ok_or(CheckSkipped::Busy)?;
                    room = Some(found);
                    CheckedBy::Worker(turn)
                }
                (_, by) => by,
            };
            let known = room.unwrap_or_else(|| kind.room((*body).as_ref()));
            room = Some(known);
            let needed = known + head_room;
            if !memory.may_hold(length + needed) {
                return Err(CheckSkipped::TooLarge);
            }
            lacks_memory = needed > FREE_BYTES && !memory.set(needed);
            if lacks_memory {
                // Others have their turns meanwhile.
                drop(by);
                tokio::time::sleep(MEMORY_LOOK).await;
                continue;
            }
            let turn = match by {
                CheckedBy::This(ready) => return Ok(ready.finish(partial, (*body).as_ref(), &stop)),
                CheckedBy::Worker(turn) => turn,
            };
            let validator = validator.clone();
            let check = turn.run(move || {
                let verdict = validator.finish(partial, (*body).as_ref(), &stop);
                drop((body, memory));
                verdict
            });
            return check.await.map(|(verdict, _)| verdict).ok_or(CheckSkipped::Busy);
        }
    };
    let checked = timeout_at(deadline.into(), check).await;
    checked.unwrap_or(Err(if lacks_memory { CheckSkipped::OutOfMemory } else { CheckSkipped::Expired }))
}
