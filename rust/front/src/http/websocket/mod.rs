//! WebSockets: the front speaks the protocol with the client, and exchanges messages with the handler.
mod codec;
mod forward;
#[cfg(fuzzing)]
pub mod fuzzing;
mod rate;
mod relay;

use std::time::Duration;

use serde_json::json;

use self::relay::{Relay, SocketEnd};
use super::client::{Client, Next};
use super::exchange::Exchange;
use super::received_request::ReceivedRequest;
use super::response::{Persistence, ResponseHead};
use super::stream::StreamError;
use super::upgrade::Upgrade;
use crate::messages::Level;
use crate::policies::{Policies, Sockets};
use crate::upstream::{SWITCHING, StreamedAnswer};

/// Headers of the handshake that only the front sets.
const OF_HANDSHAKE: [&[u8]; 3] = [b"sec-websocket-accept", b"sec-websocket-extensions", b"sec-websocket-version"];
const PROTOCOL: &[u8] = b"sec-websocket-protocol";

/// Goes on as a WebSocket, which a handler has accepted, until that ends. It counts as a request until then.
///
/// # Errors
/// When nothing more can be sent to the client.
pub async fn run_websocket<C: Client>(
    exchange: &mut Exchange<'_, C>,
    request: &ReceivedRequest,
    streamed: StreamedAnswer,
) -> Result<Next, StreamError> {
    let StreamedAnswer { head, body } = streamed;
    let (Ok(destination), Some(Ok(upgrade))) = (&request.to, &request.upgrade) else { return Err(StreamError::Gone) };
    let mut lines = handshake(upgrade, &head.lines);
    if let Some((policies, outcome)) = destination.policies() {
        lines = policies.response_lines(outcome, lines.into(), &head.host_lines).into_owned();
    }
    let response = ResponseHead {
        status: SWITCHING,
        lines: &lines,
        has_date: head.has_date,
        request_id: &request.id,
        transport_lines: "",
        persistence: Persistence::Default,
        content_length: None,
    };
    let bytes = response.bytes(&exchange.thread.dates, 0);
    exchange.thread.answered_by_handler();
    let unlimited = Sockets::default();
    let limits = destination.state.policies.as_deref().and_then(Policies::sockets).unwrap_or(&unlimited);
    let idle = Duration::from_millis(destination.state.limits.idle_timeout_ms.into());
    let share = destination.endpoint.request_memory(&exchange.thread.memory);
    let Some(stream) = exchange.client.raw() else { return Err(StreamError::Gone) };
    let mut relay = Relay::new(stream, body, limits, idle, share);
    let left = relay.run(&bytes).await;
    let sent = relay.sent();
    // The handler is told before anything else is done.
    drop(relay);
    exchange.count_finished(request, SWITCHING, sent, None, left.reason());
    if let SocketEnd::Handler(reason) = &left {
        let fields = json!({
            "request_id": request.id,
            "endpoint_id": &*destination.endpoint.shared.id,
            "reason": &**reason,
        });
        exchange.thread.supervisor.log(Level::Warn, fields, "a WebSocket was cut off");
    }
    match left {
        SocketEnd::Gone(_) => Err(StreamError::Gone),
        _ => Ok(Next::Close),
    }
}

/// The header lines with which a WebSocket begins: those of the front, and those of the handler that fit.
fn handshake(upgrade: &Upgrade, of_handler: &[u8]) -> Vec<u8> {
    let mut lines =
        format!("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n", upgrade.accept)
            .into_bytes();
    for line in of_handler.split_inclusive(|&byte| byte == b'\n') {
        let (name, value) = line.split_at(line.iter().position(|&byte| byte == b':').unwrap_or(line.len()));
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
        // A client gives up when it gets one that it has not offered.
        let is_foreign = is(PROTOCOL) && !upgrade.protocols.iter().any(|offered| offered.as_bytes() == value);
        if !is_foreign && !OF_HANDSHAKE.iter().any(|other| is(other)) {
            lines.extend_from_slice(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_adds_lines_to_the_handshake_but_changes_none() {
        let upgrade = Upgrade { accept: "a=".to_owned(), protocols: vec!["chat".to_owned(), "v2".to_owned()] };
        let own = b"Set-Cookie: a=b\r\nsec-websocket-protocol: v2\r\nSec-WebSocket-Accept: x\r\n\
                    Sec-WebSocket-Extensions: y\r\nSec-WebSocket-Protocol: v3\r\n";
        let lines = String::from_utf8(handshake(&upgrade, own)).unwrap();
        let expected = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a=\r\n\
                        Set-Cookie: a=b\r\nsec-websocket-protocol: v2\r\n";
        assert_eq!(lines, expected);
    }
}
