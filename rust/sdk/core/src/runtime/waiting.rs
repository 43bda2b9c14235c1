//! A thread that waits for what comes on the connection of its request: credit, or a piece of a body. If all other
//! threads are busy, it reads the connection itself.

use super::gateway_connection::GatewayConnection;
use super::streams::Table;
use super::Runtime;
use std::io;
use std::sync::Arc;

/// The connection of a thread that waits.
pub struct Waiter {
    pub(super) runtime: &'static Runtime,
    pub connection: Arc<GatewayConnection>,
}

impl Waiter {
    /// Waits until `attempt` has a result.
    ///
    /// # Errors
    /// Those of `attempt`.
    pub fn wait_for<T>(&self, mut attempt: impl FnMut(&mut Table) -> io::Result<Option<T>>) -> io::Result<T> {
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
            // Asked with the table locked: whoever gives the right to read back tells this thread after it waits.
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
        if self.runtime.pool.is_exhausted() {
            self.read(|| false);
        }
    }

    /// Takes what has come, if no other thread reads; waits for something if it `waits`, which is asked once nothing
    /// can come but by this thread.
    pub fn read(&self, waits: impl FnOnce() -> bool) {
        let Some(has_request) = self.connection.read_aside(waits) else { return };
        self.connection.streams.reader_has_left();
        // Once this thread goes on, there may be none that reads.
        self.runtime.monitor.wake();
        if has_request {
            self.runtime.request_thread(&self.connection);
        }
    }
}
