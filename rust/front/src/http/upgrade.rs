//! Requests that ask to go on as a WebSocket (RFC 6455, section 4.2).
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::policies::{Origins, Policies, Sockets};
use crate::request::{Head, Refusal};

const VERSION: &[u8] = b"13";
/// Decoded.
const KEY_BYTES: usize = 16;
/// What the answer to a key is made with.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What such a request says. It matters only where the handler takes WebSockets.
#[derive(Debug)]
pub struct Upgrade {
    /// The value of `Sec-WebSocket-Accept`.
    pub accept: String,
    /// The protocols that the client offers.
    pub protocols: Vec<String>,
}

/// Reads what a request says that asks for a WebSocket. `scheme`: of the request, as its client has sent it.
///
/// # Errors
/// The answer to a request that gets none.
pub fn read(head: &Head<'_, '_>, scheme: &str, policies: Option<&Policies>) -> Result<Upgrade, Refusal> {
    if head.single_header("sec-websocket-version") != Some(VERSION) {
        return Err(Refusal::websocket_version());
    }
    let Some(key) = head.single_header("sec-websocket-key").filter(|key| is_key(key)) else {
        return Err(Refusal::malformed("A WebSocket needs one Sec-WebSocket-Key: 16 bytes in base64."));
    };
    if !admits_origin(head, scheme, policies.and_then(Policies::sockets)) {
        return Err(Refusal::foreign_origin());
    }
    let protocols = values(head, "sec-websocket-protocol").flat_map(|value| value.split(|&byte| byte == b','));
    Ok(Upgrade {
        accept: STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat())),
        protocols: protocols.map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect(),
    })
}

fn is_key(key: &[u8]) -> bool {
    STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == KEY_BYTES)
}

/// Whether the page that asks may. Browsers send cookies along to any host, and ask for no permission before they open
/// a WebSocket: who checks the origin is the server. What has none is no browser.
fn admits_origin(head: &Head<'_, '_>, scheme: &str, sockets: Option<&Sockets>) -> bool {
    let mut origins = values(head, "origin");
    let Some(origin) = origins.next() else { return true };
    let Ok(origin) = std::str::from_utf8(origin) else { return false };
    let is_allowed = |allowed: &Origins| allowed.allows_any || allowed.allow(origin);
    origins.next().is_none()
        && (is_same_host(origin, scheme, head.target.authority)
            || sockets.is_some_and(|sockets| is_allowed(&sockets.allowed_origins)))
}

/// Whether a page comes from the host and the port that it asks. A request without TLS may have had it up to a proxy,
/// and come from a page with TLS; but what asks with TLS is a page with TLS.
fn is_same_host(origin: &str, scheme: &str, authority: &str) -> bool {
    let Some((page, host)) = origin.split_once("://") else { return false };
    let usual_port = match (page, scheme) {
        ("https", _) => ":443",
        ("http", "http") => ":80",
        _ => return false,
    };
    let without_port = |host: &str| host.strip_suffix(usual_port).unwrap_or(host).to_ascii_lowercase();
    without_port(host) == without_port(authority)
}

fn values<'a>(head: &'a Head<'_, '_>, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    head.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;
    use crate::request::{MAX_HEADERS, read_head};

    const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const VERSION: &str = "Sec-WebSocket-Version: 13\r\n";

    fn with<T>(lines: &str, look: impl FnOnce(&Head<'_, '_>) -> T) -> T {
        let bytes = format!("GET / HTTP/1.1\r\nHost: own.test:8080\r\n{lines}\r\n");
        let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        look(&read_head(bytes.as_bytes(), &mut space).unwrap())
    }

    fn status(lines: &str) -> u16 {
        with(lines, |head| read(head, "http", None).map_or_else(|refusal| refusal.status, |_| 101))
    }

    #[test]
    fn the_answer_to_a_key_is_that_of_the_rfc() {
        let lines = format!("{KEY}{VERSION}Sec-WebSocket-Protocol: chat, v2\r\nSec-WebSocket-Protocol: v3\r\n");
        let upgrade = with(&lines, |head| read(head, "http", None).unwrap());
        assert_eq!(upgrade.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(upgrade.protocols, ["chat", "v2", "v3"]);
    }

    #[test]
    fn versions_and_keys_are_checked() {
        let other = "Sec-WebSocket-Version: 8\r\n";
        for lines in [KEY.to_owned(), format!("{KEY}{other}"), format!("{KEY}{VERSION}{other}")] {
            assert_eq!(status(&lines), 426, "{lines}");
        }
        for key in ["", "Sec-WebSocket-Key: abc\r\n", "Sec-WebSocket-Key: dGhlIHNhbXBsZQ==\r\n", &KEY.repeat(2)] {
            assert_eq!(status(&format!("{key}{VERSION}")), 400, "{key}");
        }
    }

    #[test]
    fn pages_of_the_same_host_and_what_is_no_page_are_let_in() {
        for (origin, expected) in [
            ("", 101),
            ("Origin: http://own.test:8080\r\n", 101),
            ("Origin: https://OWN.test:8080\r\n", 101),
            ("Origin: http://own.test\r\n", 403),
            ("Origin: http://other.test:8080\r\n", 403),
            ("Origin: null\r\n", 403),
            ("Origin: http://own.test:8080\r\nOrigin: http://own.test:8080\r\n", 403),
        ] {
            assert_eq!(status(&format!("{KEY}{VERSION}{origin}")), expected, "{origin}");
        }
        for (origin, scheme, authority, expected) in [
            ("https://own.test", "http", "own.test:443", true),
            ("https://own.test", "https", "own.test", true),
            ("https://own.test", "http", "own.test:80", false),
            ("http://own.test", "https", "own.test", false),
        ] {
            assert_eq!(is_same_host(origin, scheme, authority), expected, "{origin} {scheme} {authority}");
        }
    }

    #[test]
    fn only_a_whole_request_to_upgrade_asks_for_a_socket() {
        let asks = |lines: &str| with(lines, |head| head.asks_for_socket);
        assert!(asks("Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"));
        for lines in [
            "Upgrade: websocket\r\n",
            "Connection: upgrade\r\n",
            "Connection: upgrade\r\nUpgrade: h2c\r\n",
            "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n",
        ] {
            assert!(!asks(lines), "{lines}");
        }
    }
}
