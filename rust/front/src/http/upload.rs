//! Sends a request to its handler while its body arrives, and the answer when there is one.
use std::time::{Duration, Instant};

use edge_wire::MAX_DATA_BYTES;
use tokio::time::{sleep, timeout_at};

use super::client::{Client, Next};
use super::exchange::Exchange;
use super::failure::refusal_of;
use super::received_request::{Destination, ReceivedRequest};
use super::stream::StreamError;
use super::streamed::send_stream;
use crate::guard::Phase;
use crate::request::{Framing, Refusal};
use crate::upstream::endpoint::Failure;
use crate::upstream::{ActiveRequest, Outcome, Upload};

/// Bodies up to this length are sent whole, if the client says how long they are.
const WHOLE_BYTES: u64 = 256 * 1024;

/// A piece that finds no memory tries again after this.
const MEMORY_RETRY: Duration = Duration::from_millis(100);

/// Why no more of a body is sent.
pub enum UploadStop {
    /// The client has left, or is too slow.
    Client(StreamError),
    /// The client sends nothing.
    Idle,
    /// The handler reads nothing.
    Unread,
    /// It is longer than a policy allows.
    TooLarge(usize),
}

impl From<StreamError> for UploadStop {
    fn from(broken: StreamError) -> Self {
        Self::Client(broken)
    }
}

/// How far a body has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A part of it was read, or sent.
    Moved,
    /// The handler has all of it, or wants no more.
    Done,
}

/// A body on its way from the client to the handler, of which at most a piece is here. Its request counts as active
/// while this is there.
pub struct OngoingUpload<'a> {
    pub upload: Upload,
    _active: ActiveRequest<'a>,
    /// What was read of it last, and how much of that was sent.
    piece: Vec<u8>,
    sent: usize,
    /// Bytes read so far.
    length: u64,
    limit: Option<usize>,
    /// The longest time in which nothing moves, and when something has.
    idle: Duration,
    moved: Instant,
    /// The time for the answer, from the end of the body on.
    timeout: Duration,
    pub is_done: bool,
    /// The answer has begun, which a client may wait for before it sends more.
    pub is_answered: bool,
}

impl OngoingUpload<'_> {
    /// Reads a piece, or sends some of it, or says that there is no more. Nothing is lost when the future is dropped.
    pub async fn advance<C: Client>(&mut self, client: &mut C) -> Result<Progress, UploadStop> {
        if self.sent < self.piece.len() {
            return self.send(client).await;
        }
        if client.is_complete() {
            self.upload.end(Instant::now() + self.timeout);
            self.is_done = true;
            return Ok(Progress::Done);
        }
        self.piece.clear();
        self.sent = 0;
        // What it was watched for goes on, unless the handler has held it back.
        let phase = if self.is_answered { Phase::Unwatched } else { Phase::Piece };
        if client.watch().phase() != phase {
            client.watch().begin(phase);
        }
        let until = self.idle_until();
        timeout_at(until, client.read_body(&mut self.piece, MAX_DATA_BYTES)).await.map_err(|_| UploadStop::Idle)??;
        self.moved = Instant::now();
        self.length += self.piece.len() as u64;
        match self.limit {
            Some(limit) if self.length > limit as u64 => Err(UploadStop::TooLarge(limit)),
            _ => Ok(Progress::Moved),
        }
    }

    /// When too long nothing has moved; what moves in the other direction does not count.
    fn idle_until(&self) -> tokio::time::Instant {
        (self.moved + self.idle).into()
    }

    async fn send<C: Client>(&mut self, client: &mut C) -> Result<Progress, UploadStop> {
        match self.upload.room() {
            None => {
                self.is_done = true;
                return Ok(Progress::Done);
            }
            Some(0) => {
                client.watch().begin(Phase::Unwatched);
                let has_room = timeout_at(self.idle_until(), self.upload.has_room());
                let in_time = match client.is_complete() && !self.is_answered {
                    // It may have closed its sending side, and wait for the answer.
                    true => client.until_client_resets(has_room).await?,
                    false => client.until_client_closes(has_room).await?,
                };
                in_time.map_err(|_| UploadStop::Unread)?;
            }
            Some(_) => match self.upload.send(&self.piece[self.sent..]) {
                Some(sent) => {
                    self.sent += sent;
                    self.moved = Instant::now();
                }
                None => {
                    // Others have it. It is not the client that is slow.
                    client.watch().begin(Phase::Unwatched);
                    client.until_client_resets(sleep(MEMORY_RETRY)).await?;
                    self.moved = Instant::now();
                }
            },
        }
        Ok(Progress::Moved)
    }
}

/// Whether a request is one whose body may be sent while it arrives.
pub fn may_upload(request: &ReceivedRequest, destination: &Destination) -> bool {
    let is_long = match request.framing {
        Framing::None => false,
        Framing::Length(length) => length > WHOLE_BYTES,
        Framing::Chunked => true,
    };
    let limit = destination.body_limit();
    is_long
        // One that is too long is refused before anything of it is read.
        && !matches!((request.framing, limit), (Framing::Length(length), Some(limit)) if length > limit as u64)
        && destination.policies().is_none_or(|(policies, outcome)| !policies.needs_body(outcome))
}

/// Sends a request while its body arrives, and the answer to the client. `None` if its handler takes whole requests
/// only.
pub async fn send_upload<C: Client>(
    exchange: &mut Exchange<'_, C>,
    request: &ReceivedRequest,
    destination: &Destination,
) -> Result<Option<Next>, StreamError> {
    let Destination { endpoint, state, head, place, .. } = destination;
    let memory = &exchange.thread.memory;
    loop {
        let deadline = Instant::now() + request.timeout();
        let (upload, active) = match endpoint.open(head, exchange.reply, deadline, *place, memory).await {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(None),
            Err(failure) => {
                request.started.set(Instant::now() - request.waited);
                return refuse_failure(exchange, request, destination, failure).await.map(Some);
            }
        };
        request.started.set(Instant::now() - request.waited);
        let mut arriving = OngoingUpload {
            upload,
            _active: active,
            piece: Vec::new(),
            sent: 0,
            length: 0,
            limit: destination.body_limit(),
            idle: Duration::from_millis(state.limits.idle_timeout_ms.into()),
            moved: Instant::now(),
            timeout: request.timeout(),
            is_done: false,
            is_answered: false,
        };
        let outcome = match upload_outcome(exchange, &mut arriving).await {
            Ok(outcome) => outcome,
            Err(stop) => return stop_upload(exchange, request, destination, arriving, stop).await.map(Some),
        };
        let failure = match outcome {
            Outcome::Streamed(streamed) => {
                arriving.is_answered = true;
                return send_stream(exchange, request, streamed, Some(arriving)).await.map(Some);
            }
            Outcome::Answered(answer) => {
                drop(arriving);
                let is_complete = exchange.client.drop_small_body().await?;
                let keep_alive = request.keep_alive && is_complete;
                let refusal = match exchange.respond(request, endpoint, answer, keep_alive).await? {
                    Ok(next) => {
                        if !is_complete {
                            exchange.client.drop_rest_of_body().await;
                        }
                        return Ok(Some(next));
                    }
                    Err(refusal) => refusal,
                };
                return exchange.refuse(request, &refusal).await.map(Some);
            }
            // Nothing of it is lost: another handler gets it.
            Outcome::Unsent if arriving.length == 0 => continue,
            Outcome::Unsent => Failure::Aborted("it has ended".into()),
            Outcome::Aborted(reason) => Failure::Aborted(reason),
            Outcome::TooLarge => Failure::OutOfMemory,
            Outcome::Expired => Failure::Expired,
        };
        // What the client still sends is waited for after this.
        drop(arriving);
        return refuse_failure(exchange, request, destination, failure).await.map(Some);
    }
}

/// Sends the body, until its request is answered or has failed.
async fn upload_outcome<C: Client>(
    exchange: &mut Exchange<'_, C>,
    arriving: &mut OngoingUpload<'_>,
) -> Result<Outcome, UploadStop> {
    if !exchange.client.is_complete() {
        exchange.client.begin_body().await?;
    }
    while !arriving.is_done {
        tokio::select! {
            biased;
            outcome = exchange.reply.outcome() => return Ok(outcome),
            moved = arriving.advance(exchange.client) => moved?,
        };
    }
    exchange.client.watch().begin(Phase::Unwatched);
    exchange.client.release_memory();
    Ok(exchange.client.until_client_resets(exchange.reply.outcome()).await?)
}

/// Answers a request whose body does not come to its end.
async fn stop_upload<C: Client>(
    exchange: &mut Exchange<'_, C>,
    request: &ReceivedRequest,
    destination: &Destination,
    mut arriving: OngoingUpload<'_>,
    stop: UploadStop,
) -> Result<Next, StreamError> {
    match stop {
        UploadStop::Client(broken) => {
            arriving.upload.reason = match &broken {
                StreamError::Refused(Refusal { status: 408, .. }) => "the client was too slow",
                _ => "the client has left, or has sent what is no HTTP",
            };
            Err(broken)
        }
        UploadStop::Idle => {
            arriving.upload.reason = "the client has sent nothing for too long";
            Err(Refusal::too_slow().into())
        }
        UploadStop::Unread => {
            arriving.upload.expire();
            drop(arriving);
            refuse_failure(exchange, request, destination, Failure::Expired).await
        }
        UploadStop::TooLarge(limit) => {
            arriving.upload.reason = "it is larger than the policy body_limit allows";
            drop(arriving);
            let refusal = Refusal { policy: Some("body_limit"), ..Refusal::body_too_large(limit) };
            exchange.refuse(request, &refusal).await
        }
    }
}

async fn refuse_failure<C: Client>(
    exchange: &mut Exchange<'_, C>,
    request: &ReceivedRequest,
    destination: &Destination,
    failure: Failure,
) -> Result<Next, StreamError> {
    let refusal = refusal_of(failure, exchange.thread, &destination.endpoint, &destination.state, &request.id);
    exchange.refuse(request, &refusal).await
}
