//! Sends an answer to the client piece by piece, while the handler makes it.
use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::client::{Client, Next};
use super::exchange::Exchange;
use super::received_request::ReceivedRequest;
use super::response::ResponseHead;
use super::stream::StreamError;
use super::upload::{OngoingUpload, UploadStop};
use crate::messages::Level;
use crate::upstream::{BodyStream, End, StreamedAnswer};

/// Why a body has not come to its end.
enum CutReason {
    /// The client has left, or takes it too slowly.
    Client,
    /// The reason, for logs.
    Handler(Rc<str>),
}

impl From<UploadStop> for CutReason {
    fn from(stop: UploadStop) -> Self {
        Self::Handler(match stop {
            UploadStop::Client(_) => return Self::Client,
            UploadStop::Idle => "nothing more of the request has come".into(),
            UploadStop::Unread => "its handler reads no more of the request".into(),
            UploadStop::TooLarge(limit) => format!("its request is larger than the {limit} bytes of body_limit").into(),
        })
    }
}

impl From<StreamError> for CutReason {
    fn from(_: StreamError) -> Self {
        Self::Client
    }
}

const LEFT: &str = "the client has left before the end of the stream";

/// Sends an answer whose body follows, and meanwhile what is still `arriving` of the request, which counts as
/// active until the end of the answer.
///
/// # Errors
/// When the connection cannot go on; also when the body has no end, which the client sees by that.
pub async fn send_stream<C: Client>(
    exchange: &mut Exchange<'_, C>,
    request: &ReceivedRequest,
    streamed: StreamedAnswer,
    mut arriving: Option<OngoingUpload<'_>>,
) -> Result<Next, StreamError> {
    let StreamedAnswer { head, mut body } = streamed;
    let Ok(destination) = &request.to else { return Err(StreamError::Gone) };
    let mut lines = Cow::Borrowed(&head.lines[..]);
    if let Some((policies, outcome)) = destination.policies() {
        lines = policies.response_lines(outcome, lines, &head.host_lines);
    }
    let length = head.content_length.filter(|_| head.status != 204 && head.status != 304);
    // HTTP/1.0 has no other way to say where a body of unknown length ends.
    let keep_alive = request.keep_alive && (length.is_some() || !request.is_old);
    let response = ResponseHead {
        status: head.status,
        lines: &lines,
        has_date: head.has_date,
        request_id: &request.id,
        transport_lines: exchange.transport_lines(&lines),
        persistence: exchange.persistence(request, keep_alive),
        content_length: length.map(|length| length as usize),
    };
    exchange.thread.answered_by_handler();
    if request.is_head() || head.status == 204 || head.status == 304 {
        drop((body, arriving));
        exchange.count_finished(request, head.status, 0, None, None);
        let next = exchange.client.send(response, b"").await?;
        return end_response(exchange.client, next).await;
    }
    if head.takes_memory && exchange.client.can_send_file() {
        body.may_have_memory();
    }
    let idle = Duration::from_millis(destination.state.limits.idle_timeout_ms.into());
    let mut bytes = 0;
    let sent = send_pieces(exchange.client, response, &mut body, &mut arriving, length, idle, &mut bytes).await;
    // The handler is told before anything else is done.
    drop((body, arriving));
    let cut = match &sent {
        Ok(_) => None,
        Err(CutReason::Client) => Some(LEFT),
        Err(CutReason::Handler(reason)) => Some(&**reason),
    };
    exchange.count_finished(request, head.status, bytes, None, cut);
    match sent {
        Ok(next) => end_response(exchange.client, next).await,
        // Whatever the client has sent: the answer has begun, and there is no place for another one.
        Err(CutReason::Client) => {
            exchange.client.cut_off();
            Err(StreamError::Gone)
        }
        Err(CutReason::Handler(reason)) => {
            let endpoint_id = &*destination.endpoint.shared.id;
            let fields = json!({ "request_id": request.id, "endpoint_id": endpoint_id, "reason": &*reason });
            exchange.thread.supervisor.log(Level::Warn, fields, "a streamed response was cut off");
            exchange.client.cut_off();
            Err(StreamError::Gone)
        }
    }
}

/// The answer is complete. What is left of the request is dropped; where that has no end, the connection has one.
async fn end_response(client: &mut impl Client, next: Next) -> Result<Next, StreamError> {
    let is_complete = match client.drop_small_body().await {
        Ok(is_complete) => is_complete || client.drop_rest_of_body().await,
        // It is no HTTP; but the request is answered.
        Err(_) => false,
    };
    Ok(if is_complete { next } else { Next::Close })
}

async fn send_pieces<C: Client>(
    client: &mut C,
    head: ResponseHead<'_>,
    body: &mut BodyStream,
    arriving: &mut Option<OngoingUpload<'_>>,
    length: Option<u64>,
    idle: Duration,
    bytes: &mut usize,
) -> Result<Next, CutReason> {
    client.begin_stream(head).await?;
    let mut missing = length;
    // What moves in the other direction does not count.
    let mut until = Instant::now() + idle;
    loop {
        let next = match arriving.as_mut().filter(|arriving| !arriving.is_done) {
            None => client.until_client_closes(timeout_at(until, body.next_pieces())).await?,
            // Both take turns, as neither may wait for the end of the other.
            Some(arriving) => tokio::select! {
                next = timeout_at(until, body.next_pieces()) => next,
                moved = arriving.advance(client) => {
                    moved?;
                    continue;
                }
            },
        };
        let pieces = match next {
            Ok(Ok(pieces)) => pieces,
            Ok(Err(End::Complete)) if missing.is_none_or(|missing| missing == 0) => {
                return Ok(client.end_stream().await?);
            }
            Ok(Err(End::Complete)) => return Err(CutReason::Handler("its body is shorter than it said".into())),
            Ok(Err(End::Broken(reason))) => return Err(CutReason::Handler(reason)),
            Ok(Err(End::Drained(reason))) => return Err(CutReason::Handler(reason.into())),
            Err(_) => {
                let idle = idle.as_millis();
                return Err(CutReason::Handler(format!("no more of its body has come for {idle} ms").into()));
            }
        };
        let sent: usize = pieces.iter().map(Bytes::len).sum();
        if let Some(before) = missing {
            // Nothing of these is sent: with the rest of its length, the body would look complete.
            let Some(after) = before.checked_sub(sent as u64) else {
                return Err(CutReason::Handler("its body is longer than it said".into()));
            };
            missing = Some(after);
        }
        tokio::select! {
            biased;
            sent = client.send_pieces(pieces) => sent?,
            reason = body.drained() => return Err(CutReason::Handler(reason.into())),
        }
        *bytes += sent;
        body.consumed(sent);
        body.give_memory();
        until = Instant::now() + idle;
    }
}
