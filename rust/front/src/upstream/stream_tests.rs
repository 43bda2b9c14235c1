//! Streamed answers on the connection to a handler, with a handler that does as it likes.
use std::time::Instant;

use edge_wire::{HEADER_BYTES, INITIAL_CREDIT, Kind, header, parse_header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::reply::{Outcome, Streamed};
use super::tests::{Ends, later, reply, run, until};
use super::{BodyStream, End};

const HEAD: &[u8] = br#"{"status":200,"headers":["content-length","3"]}"#;
const PIECE: usize = 32 * 1024;

impl Ends {
    async fn send_frame(&mut self, kind: Kind, number: u32, head: &[u8], body: &[u8]) {
        let frame = [&header(kind, number, head.len(), body.len())[..], head, body].concat();
        self.handler.write_all(&frame).await.unwrap();
    }

    /// What the front sends about a stream: its kind, its number, and its body.
    async fn received(&mut self) -> (Kind, u32, Vec<u8>) {
        let mut bytes = [0; HEADER_BYTES];
        self.handler.read_exact(&mut bytes).await.unwrap();
        let header = parse_header(&bytes).unwrap().unwrap();
        let mut body = vec![0; header.body_len];
        self.handler.read_exact(&mut body).await.unwrap();
        (header.kind, header.number, body)
    }

    /// A request whose answer has begun.
    async fn streamed(&mut self) -> (u32, Streamed) {
        let reply = reply().await;
        let number = self.request(&reply, later()).await;
        self.send_frame(Kind::Stream, number, HEAD, b"").await;
        let Outcome::Streamed(streamed) = reply.outcome().await else { panic!("it is streamed") };
        (number, streamed)
    }

    async fn is_served(&mut self) -> bool {
        let reply = reply().await;
        let number = self.request(&reply, later()).await;
        self.begin_answer(number, 0, 0).await;
        matches!(reply.outcome().await, Outcome::Aborted(_))
    }
}

async fn broken(body: &mut BodyStream) -> String {
    loop {
        match body.next().await {
            Ok(_) => {}
            Err(End::Broken(reason)) => return reason.to_string(),
            Err(End::Drained(reason)) => return reason.to_owned(),
            Err(end) => return format!("{end:?}"),
        }
    }
}

#[test]
fn pieces_arrive_until_the_end() {
    run(async {
        let mut ends = Ends::open().await;
        let (number, Streamed { head, mut body }) = ends.streamed().await;
        assert_eq!((head.status, head.content_length, head.lines.len()), (200, Some(3), 0));
        assert_eq!(ends.connection.in_flight(), 1);
        ends.send_frame(Kind::Data, number, b"", b"one").await;
        assert_eq!(body.next().await, Ok("one".into()));
        ends.send_frame(Kind::Data, number, b"", b"two").await;
        ends.send_frame(Kind::End, number, b"", b"").await;
        assert_eq!(body.next().await, Ok("two".into()));
        assert_eq!(body.next().await, Err(End::Complete));
        drop(body);
        assert_eq!(ends.connection.in_flight(), 0);
        // Nothing was sent about it: what comes next is a request.
        assert!(ends.is_served().await);
    });
}

#[test]
fn the_handler_may_send_further_ahead_of_a_quick_client() {
    run(async {
        let mut ends = Ends::open().await;
        let (number, Streamed { mut body, .. }) = ends.streamed().await;
        for (halves, more) in [(1, 1), (2, 2), (4, 0), (4, 0)] {
            let mut taken = 0;
            while taken < halves * INITIAL_CREDIT / 2 {
                ends.send_frame(Kind::Data, number, b"", &[7; PIECE]).await;
                let piece = body.next().await.unwrap();
                taken += piece.len();
                body.taken(piece.len());
            }
            let expected = (taken + more * INITIAL_CREDIT) as u32;
            assert_eq!(ends.received().await, (Kind::Credit, number, expected.to_be_bytes().to_vec()));
        }
    });
}

#[test]
fn credit_comes_back_with_what_is_taken_and_more_is_a_violation() {
    run(async {
        let mut ends = Ends::open().await;
        let (number, Streamed { mut body, .. }) = ends.streamed().await;
        for _ in 0..INITIAL_CREDIT / PIECE {
            ends.send_frame(Kind::Data, number, b"", &[7; PIECE]).await;
        }
        let mut taken = 0;
        while taken < INITIAL_CREDIT / 2 {
            let piece = body.next().await.unwrap();
            taken += piece.len();
            body.taken(piece.len());
        }
        let half = (INITIAL_CREDIT as u32 / 2).to_be_bytes().to_vec();
        assert_eq!(ends.received().await, (Kind::Credit, number, half));
        for _ in 0..INITIAL_CREDIT / 2 / PIECE {
            ends.send_frame(Kind::Data, number, b"", &[7; PIECE]).await;
        }
        ends.send_frame(Kind::Data, number, b"", b"x").await;
        ends.connection.closed().await;
        assert!(ends.lost.0.borrow()[0].contains("more of a stream than it may"));
        assert!(broken(&mut body).await.contains("more of a stream than it may"));
        drop(body);
        until(|| ends.is_free()).await;
    });
}

#[test]
fn a_reader_that_holds_back_its_stream_holds_back_no_other() {
    run(async {
        let mut ends = Ends::open().await;
        let (slow, Streamed { body: _slow_body, .. }) = ends.streamed().await;
        let (quick, Streamed { mut body, .. }) = ends.streamed().await;
        for _ in 0..INITIAL_CREDIT / PIECE {
            ends.send_frame(Kind::Data, slow, b"", &[7; PIECE]).await;
        }
        ends.send_frame(Kind::Data, quick, b"", b"quick").await;
        assert_eq!(body.next().await, Ok("quick".into()));
    });
}

#[test]
fn a_stream_that_nobody_wants_is_reset_and_its_number_kept_until_that_is_confirmed() {
    run(async {
        let mut ends = Ends::open().await;
        let (number, streamed) = ends.streamed().await;
        drop(streamed);
        assert_eq!(ends.connection.in_flight(), 0);
        assert_eq!(ends.received().await, (Kind::Reset, number, Vec::new()));
        ends.send_frame(Kind::Data, number, b"", b"on its way").await;
        let (other, streamed) = ends.streamed().await;
        assert_ne!(other as u16, number as u16);
        ends.send_frame(Kind::Reset, number, b"", b"").await;
        ends.send_frame(Kind::End, other, b"", b"").await;
        drop(streamed);
        until(|| ends.connection.in_flight() == 0).await;
        assert!(ends.connection.is_open());
    });
}

#[test]
fn a_stream_that_begins_past_its_deadline_is_reset() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        let number = ends.request(&reply, Instant::now()).await;
        ends.connection.expire(later(), None);
        assert!(matches!(reply.outcome().await, Outcome::Expired));
        ends.send_frame(Kind::Stream, number, HEAD, b"").await;
        assert_eq!(ends.received().await, (Kind::Reset, number, Vec::new()));
        ends.send_frame(Kind::Data, number, b"", b"late").await;
        ends.send_frame(Kind::Reset, number, b"", b"").await;
        assert!(ends.is_served().await);
    });
}

#[test]
fn a_handler_that_fails_or_ends_breaks_its_streams() {
    run(async {
        let mut ends = Ends::open().await;
        let (number, Streamed { mut body, .. }) = ends.streamed().await;
        ends.send_frame(Kind::Reset, number, b"", b"no more of it").await;
        assert_eq!(broken(&mut body).await, "no more of it");
        let (_, Streamed { mut body, .. }) = ends.streamed().await;
        ends.handler.shutdown().await.unwrap();
        assert!(broken(&mut body).await.contains("closed its connection"));
        ends.connection.closed().await;
    });
}

#[test]
fn streams_of_a_replaced_handler_end_when_their_time_is_over() {
    run(async {
        let mut ends = Ends::open().await;
        let (number, Streamed { mut body, .. }) = ends.streamed().await;
        ends.connection.retire();
        ends.connection.expire(Instant::now(), Instant::now().checked_sub(std::time::Duration::from_secs(60)));
        ends.send_frame(Kind::Data, number, b"", b"still there").await;
        assert_eq!(body.next().await, Ok("still there".into()));
        ends.connection.expire(Instant::now(), Some(Instant::now()));
        assert!(broken(&mut body).await.contains("replaced or stopped"));
        ends.connection.closed().await;
        assert!(ends.lost.0.borrow().is_empty());
    });
}

#[test]
fn frames_of_no_stream_are_violations() {
    for kind in [Kind::Stream, Kind::Data, Kind::End, Kind::Reset, Kind::Request] {
        run(async move {
            let mut ends = Ends::open().await;
            ends.send_frame(kind, 5, if kind == Kind::Stream { HEAD } else { b"" }, b"").await;
            ends.connection.closed().await;
            assert!(ends.lost.0.borrow()[0].contains("violated the protocol"));
        });
    }
}
