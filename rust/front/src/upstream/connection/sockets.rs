//! WebSockets on a connection.
use std::rc::Rc;
use std::time::Instant;

use super::super::in_flight::Pending;
use super::super::reply::Reply;
use super::super::upload::SendCredit;
use super::HandlerConnection;

/// The status with which a handler accepts a WebSocket.
pub const SWITCHING: u16 = 101;
pub(super) const UNASKED_SOCKET: &str = "its response is invalid: 101 is an answer to a request for a WebSocket only";

impl HandlerConnection {
    /// Asks for a WebSocket; the reply gets the outcome. Returns false when too many are in flight, or wait to be
    /// written.
    pub fn open_socket(&self, head: &[u8], reply: &Rc<Reply>, deadline: Instant) -> bool {
        if self.outgoing.borrow().is_full() {
            return false;
        }
        let pending = Pending { reply: reply.clone(), deadline: Some(deadline), is_socket: true };
        let Some(number) = self.in_flight.borrow_mut().add_opened(pending, SendCredit::new()) else { return false };
        self.outgoing.borrow_mut().add_head(number, head);
        self.has_outgoing.notify_one();
        true
    }
}
