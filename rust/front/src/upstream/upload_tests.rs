//! Requests whose body follows, on the connection to a handler that does as it likes.
use std::sync::Arc;

use edge_wire::{HEADER_BYTES, INITIAL_CREDIT, Kind, MAX_DATA_BYTES, credit, header, parse_header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::reply::Outcome;
use super::stream_buffer::HANDLER_DRAINED;
use super::tests::{Ends, later, reply, run, until};
use super::upload::PIECE_OVERHEAD;
use super::{Reply, Upload};
use crate::memory::{MemoryBudget, MemoryShare};

const ANSWER: &[u8] = br#"{"status":200,"headers":[]}"#;

impl Ends {
    async fn uploaded(&mut self, reply: &std::rc::Rc<Reply>) -> Upload {
        let memory = MemoryShare::new(Arc::new(MemoryBudget::new(1 << 20)), None);
        let upload = self.connection.open_request(b"{}", reply, memory).unwrap();
        assert_eq!(self.arrived().await, (Kind::Open, upload.handle.number, b"{}".to_vec()));
        upload
    }

    /// What the front sends: its kind, its number, and what it has.
    async fn arrived(&mut self) -> (Kind, u32, Vec<u8>) {
        let mut bytes = [0; HEADER_BYTES];
        self.handler.read_exact(&mut bytes).await.unwrap();
        let header = parse_header(&bytes).unwrap().unwrap();
        let mut rest = vec![0; header.head_len + header.body_len];
        self.handler.read_exact(&mut rest).await.unwrap();
        (header.kind, header.number, rest)
    }

    async fn says(&mut self, kind: Kind, number: u32, head: &[u8]) {
        let frame = [&header(kind, number, head.len(), 0)[..], head].concat();
        self.handler.write_all(&frame).await.unwrap();
    }
}

#[test]
fn no_more_is_sent_than_there_is_credit_for() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        let upload = ends.uploaded(&reply).await;
        let mut sent = 0;
        while upload.room() != Some(0) {
            sent += upload.send(&[7; MAX_DATA_BYTES]).unwrap();
            assert_eq!(ends.arrived().await.0, Kind::Data);
        }
        assert_eq!(sent, INITIAL_CREDIT);
        ends.handler.write_all(&credit(upload.handle.number, 5)).await.unwrap();
        upload.has_room().await;
        assert_eq!(upload.send(&[7; 100]), Some(5));
        assert_eq!(ends.arrived().await, (Kind::Data, upload.handle.number, vec![7; 5]));
        upload.end(later());
        assert_eq!(ends.arrived().await, (Kind::End, upload.handle.number, Vec::new()));
        // Some that was on its way is none too many.
        ends.handler.write_all(&credit(upload.handle.number, 5)).await.unwrap();
        ends.says(Kind::Response, upload.handle.number, ANSWER).await;
        assert!(matches!(reply.outcome().await, Outcome::Answered(_)));
        assert_eq!(ends.connection.in_flight(), 0);
        drop(upload);
        assert!(ends.connection.is_open());
    });
}

#[test]
fn bytes_that_wait_to_be_written_take_memory() {
    run(async {
        let ends = Ends::open().await;
        let memory = Arc::new(MemoryBudget::new(MAX_DATA_BYTES + 2 * (PIECE_OVERHEAD + HEADER_BYTES) + 1));
        let share = MemoryShare::new(memory.clone(), None);
        let upload = ends.connection.open_request(b"{}", &reply().await, share).unwrap();
        assert_eq!(upload.send(&[7; MAX_DATA_BYTES]), Some(MAX_DATA_BYTES));
        assert_eq!(upload.send(b"12"), None);
        assert_eq!(upload.send(b"1"), Some(1));
        until(|| MemoryShare::new(memory.clone(), None).set(MAX_DATA_BYTES)).await;
        assert_eq!(upload.send(b"12"), Some(2));
    });
}

#[test]
fn a_handler_that_answers_early_gets_no_more() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        let upload = ends.uploaded(&reply).await;
        ends.says(Kind::Response, upload.handle.number, ANSWER).await;
        assert!(matches!(reply.outcome().await, Outcome::Answered(_)));
        assert_eq!(upload.room(), None);
        // The reset comes before anything else is sent by its number.
        assert_eq!(ends.arrived().await, (Kind::Reset, upload.handle.number, Vec::new()));
        drop(upload);
        let next = ends.uploaded(&reply).await;
        ends.says(Kind::Response, next.handle.number, ANSWER).await;
        assert!(matches!(reply.outcome().await, Outcome::Answered(_)));
    });
}

#[test]
fn a_client_that_leaves_is_told_and_its_late_answer_is_none_of_another() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        for has_ended in [false, true] {
            let upload = ends.uploaded(&reply).await;
            let number = upload.handle.number;
            if has_ended {
                upload.end(later());
                assert_eq!(ends.arrived().await.0, Kind::End);
            }
            drop(upload);
            assert_eq!(ends.arrived().await, (Kind::Reset, number, b"the client has left".to_vec()));
            assert_eq!(ends.connection.in_flight(), 0);
            let next = ends.uploaded(&reply).await;
            assert_ne!(next.handle.number as u16, number as u16);
            ends.says(Kind::Response, number, ANSWER).await;
            ends.says(Kind::Response, next.handle.number, ANSWER).await;
            assert!(matches!(reply.outcome().await, Outcome::Answered(_)));
            assert_eq!(ends.arrived().await.0, Kind::Reset);
        }
        assert!(ends.connection.is_open());
    });
}

#[test]
fn both_directions_have_an_end_each() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        let upload = ends.uploaded(&reply).await;
        ends.says(Kind::Stream, upload.handle.number, ANSWER).await;
        let Outcome::Streamed(streamed) = reply.outcome().await else { panic!("it is streamed") };
        assert_eq!(upload.send(b"more"), Some(4));
        assert_eq!(ends.arrived().await.0, Kind::Data);
        upload.end(later());
        assert_eq!(ends.arrived().await.0, Kind::End);
        assert_eq!(ends.connection.in_flight(), 1);
        ends.says(Kind::End, upload.handle.number, b"").await;
        until(|| ends.connection.in_flight() == 0).await;
        drop((streamed, upload));
        // One reset ends both.
        let upload = ends.uploaded(&reply).await;
        ends.says(Kind::Stream, upload.handle.number, ANSWER).await;
        let Outcome::Streamed(streamed) = reply.outcome().await else { panic!("it is streamed") };
        drop(streamed);
        assert_eq!(ends.arrived().await.0, Kind::Reset);
        assert_eq!(upload.room(), None);
        drop(upload);
        ends.says(Kind::Reset, 0, b"").await;
        ends.connection.closed().await;
        assert!(ends.lost.0.borrow()[0].contains("it ended no stream"));
    });
}

#[test]
fn uploads_of_a_replaced_handler_end_when_their_time_is_over() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        let upload = ends.uploaded(&reply).await;
        ends.connection.retire();
        ends.connection.end_streams(HANDLER_DRAINED);
        let Outcome::Aborted(reason) = reply.outcome().await else { panic!("it is aborted") };
        assert!(reason.contains("replaced or stopped"));
        assert_eq!(upload.room(), None);
        drop(upload);
        ends.connection.closed().await;
        assert!(ends.lost.0.borrow().is_empty());
    });
}
