//! What those see of a connection who read or write one of its streams.
use std::time::Instant;

use edge_wire::{Kind, MEMORY_BYTES, credit, header, memory};

use super::super::in_flight::StreamState;
use super::super::outgoing::RequestBody;
use super::super::shared_memory::{Memories, MemoryOffer};
use super::super::stream_handle::StreamCarrier;
use super::HandlerConnection;

impl StreamCarrier for HandlerConnection {
    fn send_piece(&self, frame: RequestBody) {
        if self.is_open() {
            self.outgoing.borrow_mut().add_piece(frame);
            self.has_outgoing.notify_one();
        }
    }

    fn end_body(&self, number: u32, deadline: Instant) {
        let mut in_flight = self.in_flight.borrow_mut();
        if in_flight.take_body(number).is_some() {
            in_flight.set_deadline(number, deadline);
            self.queue_frame(&header(Kind::End, number, 0, 0));
        }
    }

    fn leave(&self, number: u32, reason: &str) {
        let mut in_flight = self.in_flight.borrow_mut();
        let is_pending = in_flight.abandon(number).is_some();
        let has_body = in_flight.take_body(number).is_some();
        drop(in_flight);
        if is_pending || has_body {
            self.reset(number, reason);
            // The end of both directions.
            self.in_flight.borrow_mut().drop_stream(number);
            self.close_if_done();
        }
    }

    fn expire_request(&self) {
        self.events.deadline_exceeded(self.instance_id);
    }

    fn give_credit(&self, number: u32, bytes: u32) {
        // It knows of none that has ended.
        if bytes > 0 && matches!(self.in_flight.borrow_mut().stream(number), Some(StreamState::Open(_))) {
            self.queue_frame(&credit(number, bytes));
        }
    }

    fn is_streaming(&self, number: u32) -> bool {
        self.is_open() && matches!(self.in_flight.borrow_mut().stream(number), Some(StreamState::Open(_)))
    }

    fn memories(&self) -> &Memories {
        &self.memories
    }

    fn give_memory(&self, number: u32, MemoryOffer { which, file }: MemoryOffer) {
        let frame = memory(number, which, MEMORY_BYTES as u32);
        match file {
            Some(file) => self.outgoing.borrow_mut().add_with_file(&frame, file),
            None => self.outgoing.borrow_mut().add_frame(&frame),
        }
        self.has_outgoing.notify_one();
    }

    fn drop_stream(&self, number: u32) {
        if self.in_flight.borrow_mut().drop_stream(number) {
            // The end of both directions.
            if let Some(send_credit) = self.in_flight.borrow_mut().take_body(number) {
                send_credit.end();
            }
            self.queue_frame(&header(Kind::Reset, number, 0, 0));
            self.close_if_done();
        }
    }

    fn send_frame(&self, number: u32, kind: Kind, payload: &[u8]) {
        if matches!(self.in_flight.borrow_mut().stream(number), Some(StreamState::Open(_))) {
            self.queue_frame(&[&header(kind, number, 0, payload.len())[..], payload].concat());
        }
    }
}
