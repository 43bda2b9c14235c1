//! Heads and chunks of clients.
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use serde_json::Value;

use super::HandlerHead;
use super::chunks::Chunks;
use crate::client_ip::TrustedProxies;
use crate::request::{Framing, HeadEnd, MAX_HEADERS, TraceIds, check_beginning, host_name, read_head};

static PROXIES: LazyLock<TrustedProxies> =
    LazyLock::new(|| TrustedProxies::parse(&["10.0.0.0/8", "::1", "192.0.2.1"]).unwrap());
thread_local! {
    static TRACES: TraceIds = TraceIds::new().unwrap();
}

/// A head is found and read in the same way however it arrives, and a handler gets what is in it, as JSON.
pub fn heads(bytes: &[u8]) {
    let found = HeadEnd::default().find(bytes).ok();
    let mut in_pieces = HeadEnd::default();
    let mut found_in_pieces = Some(None);
    for end in (1..=bytes.len()).step_by(1 + bytes.len() / 8).chain([bytes.len()]) {
        found_in_pieces = in_pieces.find(&bytes[..end]).ok();
        if found_in_pieces != Some(None) {
            break;
        }
    }
    assert_eq!(found, found_in_pieces);
    let Some(Some(length)) = found else { return };
    let bytes = &bytes[..length];
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let Ok(head) = read_head(bytes, &mut space) else { return };
    assert!(check_beginning(bytes).is_ok(), "the beginning of a head that is read is refused");
    let lines = bytes.split(|&byte| byte == b'\n').count() - 2;
    assert_eq!(lines - 1, head.headers.len(), "a header has more than one line");
    let named = |name: &str| head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count();
    match head.framing {
        Framing::None => assert_eq!(named("transfer-encoding"), 0),
        Framing::Length(_) => assert!(named("content-length") > 0 && named("transfer-encoding") == 0),
        Framing::Chunked => assert!(named("transfer-encoding") == 1 && named("content-length") == 0),
    }
    assert!(!head.target.path().contains(['?', '#', ' ']), "the path is {:?}", head.target.path());
    host_name(head.target.authority);
    let peer = IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3));
    let headers = head.headers.iter().map(|header| (header.name.as_bytes(), header.value));
    let client = PROXIES.client(peer, false, headers);
    let span = TRACES.with(|traces| traces.begin(head.trace, None));
    let of_handler = HandlerHead {
        head: &head,
        params: std::iter::empty(),
        client_ip: client.ip,
        request_id: "id",
        span: &span,
        deadline_ms: 1,
        attempt: None,
        identity: None,
        asks_for_socket: head.asks_for_socket,
    };
    let json = of_handler.json();
    let read: Value = serde_json::from_slice(&json).expect("a handler gets JSON");
    let texts = read["headers"].as_array().expect("a list of headers");
    assert_eq!(texts.len() % 2, 0);
    let has_session = texts.chunks(2).any(|pair| {
        let [name, value] = [&pair[0], &pair[1]].map(|text| text.as_str().unwrap_or_default());
        let mut cookies = value.split(';').map(|pair| pair.trim_ascii_start().trim_start_matches('='));
        name.eq_ignore_ascii_case("cookie")
            && cookies.any(|cookie| cookie.trim_start_matches("__Host-").starts_with("egw_session="))
    });
    assert!(!has_session, "a handler gets the session of the management API");
}

/// The data of chunks are the same however they arrive, and nothing behind the body is taken.
pub fn chunks(bytes: &[u8]) {
    let decode = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut chunks, mut data, mut taken) = (Chunks::default(), Vec::new(), 0);
        for piece in pieces {
            match chunks.decode(piece, |part| data.extend_from_slice(part)) {
                Ok(length) => {
                    taken += length;
                    assert!(length == piece.len() || chunks.is_done());
                }
                Err(_) => return None,
            }
            if chunks.is_done() {
                break;
            }
        }
        Some((chunks.is_done(), data, taken))
    };
    let whole = decode(&mut std::iter::once(bytes));
    let in_bytes = decode(&mut bytes.chunks(1));
    assert_eq!(whole, in_bytes);
    if let Some((true, data, taken)) = whole {
        // The end is where the last line ends: with others, a request could be hidden in a body.
        assert!(bytes[..taken].ends_with(b"\r\n") && taken > data.len());
    }
}
