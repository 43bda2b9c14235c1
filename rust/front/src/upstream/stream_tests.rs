//! Streamed answers on the connection to a handler, with a handler that does as it likes.
use std::time::Instant;

use edge_wire::{
    HEADER_BYTES, INITIAL_CREDIT, Kind, MAX_CREDIT, MEMORY_BYTES, MIN_SHARED_BYTES, header, parse_header, two_numbers,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::reply::{Outcome, StreamedAnswer};
use super::tests::{Ends, later, reply, run, until};
use super::{BodyStream, End};

const HEAD: &[u8] = br#"{"status":200,"headers":["content-length","3"]}"#;
const PIECE: usize = 32 * 1024;
/// Memory for answers; half of it is for one endpoint.
const MUCH: usize = 64 << 20;

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
    async fn streamed(&mut self) -> (u32, StreamedAnswer) {
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
        let (number, StreamedAnswer { head, mut body }) = ends.streamed().await;
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
fn messages_are_for_sockets_only() {
    run(async {
        for kind in [Kind::Text, Kind::Ping, Kind::Close] {
            let mut ends = Ends::open().await;
            let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
            ends.send_frame(kind, number, b"", b"").await;
            ends.connection.closed().await;
            assert!(broken(&mut body).await.contains("a message on what is no WebSocket"));
        }
    });
}

#[test]
fn credit_comes_back_with_what_is_taken_and_more_is_a_violation() {
    run(async {
        let mut ends = Ends::open().await;
        let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
        for _ in 0..INITIAL_CREDIT / PIECE {
            ends.send_frame(Kind::Data, number, b"", &[7; PIECE]).await;
        }
        let mut taken = 0;
        while taken < INITIAL_CREDIT / 2 {
            let piece = body.next().await.unwrap();
            taken += piece.len();
            body.consumed(piece.len());
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
        let (slow, StreamedAnswer { body: _slow_body, .. }) = ends.streamed().await;
        let (quick, StreamedAnswer { mut body, .. }) = ends.streamed().await;
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
        let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
        ends.send_frame(Kind::Reset, number, b"", b"no more of it").await;
        assert_eq!(broken(&mut body).await, "no more of it");
        let (_, StreamedAnswer { mut body, .. }) = ends.streamed().await;
        ends.handler.shutdown().await.unwrap();
        assert!(broken(&mut body).await.contains("closed its connection"));
        ends.connection.closed().await;
    });
}

#[test]
fn streams_of_a_replaced_handler_end_when_their_time_is_over() {
    run(async {
        let mut ends = Ends::open().await;
        let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
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

impl Ends {
    /// Takes so much of a stream as a quick client does that its window is the widest.
    async fn take_quickly(&mut self, number: u32, body: &mut BodyStream) {
        for _ in 0..12 {
            self.send_frame(Kind::Data, number, b"", &[7; PIECE]).await;
            let piece = body.next().await.unwrap();
            body.buffer.client_is_quick();
            body.consumed(piece.len());
            body.give_memory();
        }
    }

    /// The same, and which memory its handler is given then.
    async fn given_memory(&mut self, number: u32, body: &mut BodyStream) -> u32 {
        body.may_have_memory();
        self.take_quickly(number, body).await;
        loop {
            match self.received().await {
                (Kind::Credit, ..) => {}
                (kind, of, memory) => {
                    assert_eq!((kind, of), (Kind::Memory, number));
                    let (which, bytes) = two_numbers(&memory).unwrap();
                    assert_eq!(bytes as usize, MEMORY_BYTES);
                    return which;
                }
            }
        }
    }

    async fn send_placed(&mut self, number: u32, start: usize, bytes: usize) {
        let numbers = [start, bytes].map(|value| (value as u32).to_be_bytes()).concat();
        self.send_frame(Kind::Shared, number, b"", &numbers).await;
    }
}

#[test]
fn pieces_may_be_in_memory_that_the_handler_is_given() {
    run(async {
        let mut ends = Ends::open_with(MUCH).await;
        let mut streams = Vec::new();
        // No more have it at a time.
        for which in 0..4 {
            let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
            assert_eq!(ends.given_memory(number, &mut body).await, which);
            ends.send_placed(number, MEMORY_BYTES - PIECE, PIECE).await;
            assert_eq!(body.next().await.unwrap().len(), PIECE);
            streams.push((number, body));
        }
        let (without, StreamedAnswer { mut body, .. }) = ends.streamed().await;
        body.may_have_memory();
        ends.take_quickly(without, &mut body).await;
        // One that is not used any more is given again.
        let (ended, unused) = streams.remove(2);
        drop((unused, body));
        for number in [ended, without] {
            loop {
                match ends.received().await {
                    (Kind::Credit, ..) => {}
                    (kind, of, _) => {
                        assert_eq!((kind, of), (Kind::Reset, number));
                        break;
                    }
                }
            }
        }
        until(|| ends.connection.memories.has_unused()).await;
        let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
        assert_eq!(ends.given_memory(number, &mut body).await, 2);
    });
}

#[test]
fn memory_is_given_for_clients_that_it_is_sent_to_as_it_is_and_where_there_is_enough() {
    for (memory, may_share) in [(MUCH, false), (2 * MEMORY_BYTES - 1, true)] {
        run(async move {
            let mut ends = Ends::open_with(memory).await;
            let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
            if may_share {
                body.may_have_memory();
            }
            ends.take_quickly(number, &mut body).await;
            drop(body);
            while let (kind @ (Kind::Credit | Kind::Memory), ..) = ends.received().await {
                assert_eq!(kind, Kind::Credit);
            }
        });
    }
}

#[test]
fn a_piece_that_is_not_where_it_may_be_is_a_violation() {
    for (start, bytes) in
        [(MEMORY_BYTES - PIECE + 1, PIECE), (u32::MAX as usize, PIECE), (0, MIN_SHARED_BYTES - 1), (0, MAX_CREDIT + 1)]
    {
        run(async move {
            let mut ends = Ends::open_with(MUCH).await;
            let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
            ends.given_memory(number, &mut body).await;
            ends.send_placed(number, start, bytes).await;
            assert!(broken(&mut body).await.contains("violated the protocol"), "{start} {bytes}");
            ends.connection.closed().await;
        });
    }
    run(async {
        let mut ends = Ends::open().await;
        let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
        // It was given none.
        ends.send_placed(number, 0, PIECE).await;
        assert!(broken(&mut body).await.contains("violated the protocol"));
    });
    run(async {
        let mut ends = Ends::open_with(MUCH).await;
        let (number, StreamedAnswer { mut body, .. }) = ends.streamed().await;
        ends.given_memory(number, &mut body).await;
        let credit = body.buffer.credit();
        drop(body);
        assert_eq!(ends.received().await.0, Kind::Reset);
        // A stream that nobody wants any more may still send what there is credit for.
        ends.send_placed(number, 0, credit).await;
        assert!(ends.is_served().await);
        ends.send_placed(number, 0, 1).await;
        ends.connection.closed().await;
        assert!(ends.lost.0.borrow()[0].contains("more of a stream than it may"));
    });
}

#[test]
fn frames_of_no_stream_are_violations() {
    for kind in [Kind::Stream, Kind::Data, Kind::End, Kind::Reset, Kind::Shared, Kind::Request] {
        run(async move {
            let mut ends = Ends::open().await;
            ends.send_frame(kind, 5, if kind == Kind::Stream { HEAD } else { b"" }, b"").await;
            ends.connection.closed().await;
            assert!(ends.lost.0.borrow()[0].contains("violated the protocol"));
        });
    }
}
