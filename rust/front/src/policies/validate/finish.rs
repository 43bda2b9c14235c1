//! Checks what is left of a request when its body is there, in its turn where that may take long.
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout_at;

use super::stop::Waiting;
use super::{Begun, NAME, Ready, Validator, Verdict};
use crate::memory::Share;
use crate::request::Refusal;
use crate::workers::{self, Turn};

/// What is read of a body may have so much in memory without asking for it.
const FREE_BYTES: usize = 4 * 1024;
/// How often a check looks whether there is memory for it.
pub(super) const MEMORY_LOOK: Duration = Duration::from_millis(25);

/// Why a request is not checked.
#[derive(Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// Its time is over.
    Expired,
    /// So many requests of its endpoint are being checked already.
    Busy,
    /// There is no memory for what is read of its body.
    OutOfMemory,
    /// There is never so much.
    TooLarge,
}

impl Unchecked {
    /// What the client gets. `limit_ms`: the time of a request.
    pub fn refusal(&self, limit_ms: u64) -> Refusal {
        match self {
            Self::Expired => {
                let message = format!("The request could not be checked within {limit_ms} ms.").into();
                Refusal { message, ..Refusal::policy(NAME, 504, "") }
            }
            Self::Busy => Refusal::busy(NAME, "Too many requests of this endpoint are being checked."),
            Self::OutOfMemory => Refusal::out_of_memory(),
            Self::TooLarge => {
                let message = "The body has more values than this gateway has memory to check at a time.";
                Refusal::policy(NAME, 413, message)
            }
        }
    }
}

impl fmt::Display for Unchecked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Expired => "it takes too long",
            Self::Busy => "too many requests are being checked",
            Self::OutOfMemory | Self::TooLarge => "there is no memory for it",
        })
    }
}

/// Which thread checks a request.
enum By {
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
    begun: Begun,
    body: Arc<B>,
    mut memory: Share,
    owner: &Arc<str>,
    deadline: Instant,
) -> Result<Verdict, Unchecked> {
    let (kind, length) = (begun.body, (*body).as_ref().len());
    let (head_room, has_kept) = (begun.room(), begun.kept.is_some());
    let (_waiting, stop) = Waiting::new();
    let mut lacks_memory = false;
    let check = async {
        let mut room = None;
        loop {
            // Looked at anew each time, and not held while memory is waited for: others may need what it takes.
            let by = match validator.ready_for(length).filter(|_| !has_kept) {
                Some(ready) => By::This(ready),
                None => By::Worker(workers::turn(owner).await.ok_or(Unchecked::Busy)?),
            };
            let by = match (room, by) {
                (None, By::Worker(turn)) => {
                    let body = body.clone();
                    let (found, turn) = turn.run(move || kind.room((*body).as_ref())).await.ok_or(Unchecked::Busy)?;
                    room = Some(found);
                    By::Worker(turn)
                }
                (_, by) => by,
            };
            let known = room.unwrap_or_else(|| kind.room((*body).as_ref()));
            room = Some(known);
            let needed = known + head_room;
            if !memory.may_hold(length + needed) {
                return Err(Unchecked::TooLarge);
            }
            lacks_memory = needed > FREE_BYTES && !memory.set(needed);
            if lacks_memory {
                // Others have their turns meanwhile.
                drop(by);
                tokio::time::sleep(MEMORY_LOOK).await;
                continue;
            }
            let turn = match by {
                By::This(ready) => return Ok(ready.finish(begun, (*body).as_ref(), &stop)),
                By::Worker(turn) => turn,
            };
            let validator = validator.clone();
            let check = turn.run(move || {
                let verdict = validator.finish(begun, (*body).as_ref(), &stop);
                drop((body, memory));
                verdict
            });
            return check.await.map(|(verdict, _)| verdict).ok_or(Unchecked::Busy);
        }
    };
    let checked = timeout_at(deadline.into(), check).await;
    checked.unwrap_or(Err(if lacks_memory { Unchecked::OutOfMemory } else { Unchecked::Expired }))
}
