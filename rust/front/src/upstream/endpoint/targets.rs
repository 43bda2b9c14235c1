//! Connections of an endpoint to the handlers that are to serve it, and how one set of them replaces another.
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::super::connection::HandlerConnection;
use super::super::socket::is_out_of_descriptors;
use super::{Endpoint, Upstream};
use crate::endpoint_state::EndpointState;
use crate::messages::{FromFront, HandlerTarget, Instance, Serving};

/// A front that is out of file descriptors tries to connect again after this.
const DESCRIPTORS_RETRY: Duration = Duration::from_millis(100);

impl Endpoint {
    /// Whether requests go to these handlers already.
    pub(super) fn serves(&self, targets: &[HandlerTarget]) -> bool {
        let upstreams = self.traffic().upstreams.borrow();
        let is_same = |(upstream, target): (&Upstream, &HandlerTarget)| {
            upstream.connection.instance_id == target.instance.id && upstream.connection.is_open()
        };
        upstreams.len() == targets.len() && upstreams.iter().zip(targets).all(is_same)
    }

    pub(super) async fn connect(self: Rc<Self>, number: u64, state: Arc<EndpointState>) {
        let Serving::Running { targets, .. } = &state.serving else { return };
        let mut upstreams = Vec::with_capacity(targets.len());
        for HandlerTarget { weight, version, instance } in targets {
            let connection = match self.open_connection(instance.id) {
                Some(connection) => Ok(connection),
                None => self.connect_to(number, instance).await,
            };
            match connection {
                Ok(connection) => {
                    upstreams.push(Upstream { weight: *weight, version: *version, connection, takes: instance.takes })
                }
                // It has just ended. Those before it are being replaced all the same: requests wait for the next.
                Err(error) if self.traffic().received.get() == number => {
                    self.context.supervisor.send(FromFront::ConnectionLost {
                        endpoint_id: self.shared.id.to_string(),
                        instance_id: instance.id,
                        reason: format!("it cannot be reached: {error}"),
                    })
                }
                Err(_) => {}
            }
        }
        if self.traffic().received.get() == number {
            self.replace(upstreams);
            self.settle(number);
            return;
        }
        self.retire(upstreams);
        loop {
            let settled = self.traffic().has_settled.notified();
            if self.traffic().settled.get() >= number {
                return;
            }
            settled.await;
        }
    }

    async fn connect_to(self: &Rc<Self>, number: u64, instance: &Instance) -> io::Result<Rc<HandlerConnection>> {
        loop {
            let answers = self.shared.answer_budget(self.context.pool.memory()).clone();
            match self.context.pool.connect(instance.id, &instance.socket, answers, self.clone()).await {
                // The failure is this front's own, not the handler's. What serves now stays.
                Err(error) if is_out_of_descriptors(&error) && self.traffic().received.get() == number => {
                    let text = "out of file descriptors for connections to handlers; trying again. \
                                Raise the limit of open files (ulimit -n)";
                    self.context.supervisor.warn_rarely(json!({ "error": error.to_string() }), text);
                    tokio::time::sleep(DESCRIPTORS_RETRY).await;
                }
                result => return result,
            }
        }
    }

    fn open_connection(&self, instance_id: u64) -> Option<Rc<HandlerConnection>> {
        let upstreams = self.traffic().upstreams.borrow();
        let found = upstreams.iter().find(|one| one.connection.instance_id == instance_id)?;
        found.connection.is_open().then(|| found.connection.clone())
    }

    /// Sends requests to these handlers from now on.
    pub(super) fn replace(&self, upstreams: Vec<Upstream>) {
        let old = self.traffic().upstreams.replace(upstreams);
        self.retire(old);
        self.traffic().changed.notify_waiters();
    }

    /// Retires the connections that do not serve.
    fn retire(&self, old: Vec<Upstream>) {
        let current = self.traffic().upstreams.borrow();
        for Upstream { connection, .. } in old {
            if !current.iter().any(|one| Rc::ptr_eq(&one.connection, &connection)) {
                connection.retire();
            }
        }
    }

    pub(super) fn settle(&self, number: u64) {
        self.traffic().settled.set(number);
        self.traffic().has_settled.notify_waiters();
    }
}
