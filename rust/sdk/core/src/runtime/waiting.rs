//! A thread that waits for what comes on the connection of its request: credit, or a piece of a body. If all other
//! threads are busy, it reads the connection itself.

use super::bodies::{BodyId, BodyPart, ReceivedPiece};
use super::gateway_connection::GatewayConnection;
use super::latency::waiting;
use super::streams::StreamTable;
use super::workers::Workers;
use std::io;
use std::sync::Arc;

/// The connection of a thread that waits.
pub struct Waiter {
    pub workers: &'static Workers,
    pub connection: Arc<GatewayConnection>,
}

impl Waiter {
    /// Waits until `attempt` has a result.
    ///
    /// # Errors
    /// Those of `attempt`.
    pub fn wait_for<T>(&self, mut attempt: impl FnMut(&mut StreamTable) -> io::Result<Option<T>>) -> io::Result<T> {
        let streams = &self.connection.streams;
        if let Some(result) = attempt(&mut streams.lock())? {
            return Ok(result);
        }
        let _waiting = streams.begin_waiting();
        loop {
            let mut table = streams.lock();
            if let Some(result) = attempt(&mut table)? {
                return Ok(result);
            }
            // The table is locked: whoever gives the right to read back wakes this thread after it has begun to wait.
            if self.connection.is_read() {
                drop(streams.wait(table));
                continue;
            }
            drop(table);
            // What is waited for may have come before this thread got the right to read: then nothing else may.
            let mut result = None;
            self.read(|| {
                result = attempt(&mut streams.lock()).transpose();
                result.is_none()
            });
            if let Some(result) = result {
                return result;
            }
        }
    }

    /// Takes what has come, if no thread is left to do so: the client may have left.
    pub fn look(&self) {
        if self.workers.pool.is_exhausted() {
            self.read(|| false);
        }
    }

    /// Takes what has come, if no other thread reads; waits for something if it `waits`, which is called once
    /// nothing can come but by this thread.
    pub fn read(&self, waits: impl FnOnce() -> bool) {
        let Some(has_request) = self.connection.read_aside(waits) else { return };
        self.connection.streams.reader_has_left();
        // Once this thread continues, there may be none that reads.
        self.workers.monitor.wake();
        if has_request {
            self.workers.request_thread(&self.connection);
        }
    }
}

/// The body of a request, which arrives on a connection of [`GatewayConnection`].
pub struct ConnectionBody {
    waiter: Waiter,
    id: BodyId,
    /// Another thread was asked to read the connection meanwhile.
    is_waiting: bool,
}

impl ConnectionBody {
    pub fn new(workers: &'static Workers, connection: &Arc<GatewayConnection>, id: BodyId) -> Self {
        ConnectionBody { waiter: Waiter { workers, connection: connection.clone() }, id, is_waiting: false }
    }

    /// The connection, and the number of the request.
    pub fn origin(&self) -> (Waiter, u32) {
        let Waiter { workers, connection } = &self.waiter;
        (Waiter { workers, connection: connection.clone() }, self.id.number)
    }

    /// The next piece, which is waited for, and what it is; `None` at the end.
    ///
    /// # Errors
    /// `ConnectionAborted` when the body has no end.
    pub fn next(&mut self) -> io::Result<ReceivedPiece> {
        let Waiter { workers, connection } = &self.waiter;
        let mut part = connection.streams.lock().bodies.take(self.id)?;
        if part.is_none() && !self.is_waiting {
            // It has come with its request, or takes as long as its client likes.
            self.waiter.read(|| false);
            part = connection.streams.lock().bodies.take(self.id)?;
            if part.is_none() {
                self.is_waiting = true;
                workers.request_thread(connection);
            }
        }
        let part = match part {
            Some(part) => part,
            None => waiting(|| self.waiter.wait_for(|table| table.bodies.take(self.id)))?,
        };
        let BodyPart::Piece { kind, bytes, credit } = part else { return Ok(None) };
        connection.give_credit(self.id.number, credit);
        Ok(Some((kind, bytes)))
    }
}

impl Drop for ConnectionBody {
    fn drop(&mut self) {
        let connection = &self.waiter.connection;
        connection.give_credit(self.id.number, connection.streams.close_body(self.id));
    }
}
