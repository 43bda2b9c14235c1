//! Requests whose body follows, on a connection: what is sent of them, and credit for more.
use std::rc::Rc;

use edge_wire::{Kind, credited, header};

use super::super::in_flight::Pending;
use super::super::reply::{Outcome, Reply};
use super::super::stream_handle::StreamHandle;
use super::super::upload::{SendCredit, Upload};
use super::{HandlerConnection, violated};
use crate::memory::MemoryShare;

impl HandlerConnection {
    /// Sends the head of a request, whose outcome the reply gets. `None` when too many are in flight, or wait to be
    /// written. `memory` is for what waits of its body.
    pub fn open_request(self: &Rc<Self>, head: &[u8], reply: &Rc<Reply>, memory: MemoryShare) -> Option<Upload> {
        if self.outgoing.borrow().is_full() {
            return None;
        }
        let send_credit = SendCredit::new();
        let pending = Pending { reply: reply.clone(), deadline: None, is_socket: false };
        let number = self.in_flight.borrow_mut().add_opened(pending, send_credit.clone())?;
        self.outgoing.borrow_mut().add_head(number, head);
        self.has_outgoing.notify_one();
        Some(Upload::new(StreamHandle { carrier: self.clone(), number }, send_credit, memory))
    }

    /// The handler has answered, or its answer has come to its end: it wants no more of the request.
    pub(super) fn close_body(&self, number: u32) {
        let send_credit = self.in_flight.borrow_mut().take_body(number);
        if let Some(send_credit) = send_credit {
            send_credit.end();
            self.reset(number, "");
        }
    }

    /// Ends requests that are still arriving.
    pub(super) fn end_uploads(&self, reason: &'static str) {
        let numbers = self.in_flight.borrow().opened();
        for number in numbers {
            let abandoned = self.in_flight.borrow_mut().abandon(number);
            if let Some(Pending { reply, .. }) = abandoned {
                reply.set(Outcome::Aborted(reason.into()));
            }
            self.close_body(number);
            self.close_if_done();
        }
    }

    /// The handler takes more of a body. It may not know yet that nobody sends any.
    pub(super) fn credited(&self, number: u32, body: &[u8]) -> Result<(), String> {
        let bytes = credited(body).ok_or_else(|| violated("a credit frame without a number"))?;
        if let Some(send_credit) = self.in_flight.borrow().body(number) {
            send_credit.add(bytes as usize);
        }
        Ok(())
    }

    pub(super) fn reset(&self, number: u32, reason: &str) {
        self.queue_frame(&[&header(Kind::Reset, number, 0, reason.len())[..], reason.as_bytes()].concat());
    }
}
