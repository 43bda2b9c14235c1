//! What a session is commanded to do from outside its task.
use std::cell::{Cell, OnceCell};
use std::task::Waker;

/// What others command a session to do.
#[derive(Default)]
pub struct SessionCommands {
    retire: Cell<bool>,
    close: Cell<bool>,
    drop: Cell<bool>,
    /// The nonce of its token, once that has arrived.
    pub nonce: OnceCell<Box<str>>,
    waker: Cell<Option<Waker>>,
}

impl SessionCommands {
    /// Asks the client to use the connection no more. The SDK uses none on which something has come that it did not ask
    /// for; a call that is on its way is still answered.
    pub fn retire(&self) {
        self.command(&self.retire);
    }

    /// Sends the answers that are ready, and closes the connection.
    pub fn close(&self) {
        self.command(&self.close);
    }

    /// Closes it at once.
    pub fn drop_connection(&self) {
        self.command(&self.drop);
    }

    fn command(&self, command: &Cell<bool>) {
        command.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Whether the connection is to be closed at once.
    pub fn drops(&self) -> bool {
        self.drop.get()
    }

    /// Whether the client is to be asked to use the connection no more; true once for each time.
    pub fn take_retire(&self) -> bool {
        self.retire.take()
    }

    /// Whether the connection is to be closed when the answers that are ready have been sent.
    pub fn closes(&self) -> bool {
        self.close.get()
    }

    /// The session waits for commands.
    pub fn wait_with(&self, waker: Waker) {
        self.waker.set(Some(waker));
    }
}
