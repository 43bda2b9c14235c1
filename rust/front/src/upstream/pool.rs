//! All connections to handlers of a thread.
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use slab::Slab;

use super::connection::{Events, HandlerConnection};
use super::stream_buffer::FRONT_DRAINED;
use crate::memory::{MemoryBudget, MemoryShare};

pub struct HandlerPool {
    memory: Arc<MemoryBudget>,
    connections: RefCell<Slab<Rc<HandlerConnection>>>,
}

impl HandlerPool {
    /// `memory` is for answers that have arrived in part.
    pub fn new(memory: Arc<MemoryBudget>) -> Rc<Self> {
        Rc::new(Self { memory, connections: RefCell::default() })
    }

    /// The memory for answers that have arrived in part.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Connects to a handler. `answers` limits what its endpoint may take of the memory.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn connect(
        self: &Rc<Self>,
        instance_id: u64,
        socket: &Path,
        answers: Arc<MemoryBudget>,
        events: Rc<dyn Events>,
    ) -> std::io::Result<Rc<HandlerConnection>> {
        let share = MemoryShare::new(self.memory.clone(), Some(answers));
        let (connection, running) = HandlerConnection::open(instance_id, socket, share, events).await?;
        let key = self.connections.borrow_mut().insert(connection.clone());
        let pool = self.clone();
        tokio::task::spawn_local(async move {
            running.await;
            pool.connections.borrow_mut().remove(key);
        });
        Ok(connection)
    }

    /// Requests that handlers are working on.
    pub fn in_flight(&self) -> usize {
        self.connections.borrow().iter().map(|(_, connection)| connection.in_flight()).sum()
    }

    /// Ends the requests past their deadline, and the streams of handlers that were replaced before `streams_until`.
    pub fn expire(&self, now: Instant, streams_until: Option<Instant>) {
        for (_, connection) in &*self.connections.borrow() {
            connection.expire(now, streams_until);
        }
    }

    /// Ends all streams before their end, because this front ends.
    pub fn end_streams(&self) {
        for (_, connection) in &*self.connections.borrow() {
            connection.end_streams(FRONT_DRAINED);
        }
    }

    /// Resolves when no request is in flight in a replaced instance. Also waits for connections that are not retired
    /// yet: a front that has been replaced itself retires them only once it has connected to the next handlers, and the
    /// supervisor does not wait for that.
    pub async fn drained(&self, instance_id: u64) {
        let is_draining = |one: &HandlerConnection| one.instance_id == instance_id && one.is_open();
        loop {
            let draining = {
                let connections = self.connections.borrow();
                connections.iter().find(|(_, one)| is_draining(one)).map(|(_, one)| one.clone())
            };
            match draining {
                Some(connection) => connection.closed().await,
                None => return,
            }
        }
    }
}
