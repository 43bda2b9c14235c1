//! One request, read to its end, and its response.
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::client::{Client, Next};
use super::failure::refusal_of;
use super::received_request::{Destination, ReceivedRequest};
use super::response::{Persistence, ResponseHead};
use super::stream::StreamError;
use super::streamed::send_stream;
use super::upload::{may_upload, send_upload};
use super::websocket::run_websocket;
use crate::entries::{self, FinishedRequest};
use crate::intervals;
use crate::memory::MemoryShare;
use crate::messages::Level;
use crate::policies::{self, CheckSkipped, PartialCheck, Verdict, lines_for_encoding};
use crate::request::{Framing, Refusal};
use crate::thread::Thread;
use crate::upstream::endpoint::{Endpoint, Failure, HandlerAnswer};
use crate::upstream::{Answer, Reply, RequestBody, SWITCHING};

/// What a request may have in memory without asking for it.
const FREE_BYTES: usize = 4 * 1024;

/// A request with what it takes to answer it.
pub struct Exchange<'a, C> {
    pub thread: &'a Thread,
    pub client: &'a mut C,
    pub reply: &'a Rc<Reply>,
}

impl<'a, C: Client> Exchange<'a, C> {
    /// Sends a request to its endpoint, and the response to the client.
    ///
    /// # Errors
    /// When the connection cannot go on.
    pub async fn answer(mut self, mut request: ReceivedRequest) -> Result<Next, StreamError> {
        let mut validation = None;
        if let Ok(Destination { policy_outcome: Some(policy_outcome), .. }) = &mut request.to {
            validation = policy_outcome.validation.take();
            if !policy_outcome.shared_rules.is_empty() {
                policy_outcome.count_shared_rates(&self.thread.supervisor).await;
            }
        }
        let destination = match &request.to {
            Ok(destination) => destination,
            Err(refusal) => return self.refuse(&request, refusal).await,
        };
        let Destination { endpoint, state, head, socket_head, place, policy_outcome, .. } = destination;
        if let Some(refusal) = policy_outcome.as_ref().and_then(|policy_outcome| policy_outcome.refusal.as_ref()) {
            return self.refuse(&request, refusal).await;
        }
        if may_upload(&request, destination) {
            let checked = match validation.take() {
                // It looks at the head only.
                Some(validation) => self.validate(&request, destination, validation, &Arc::default()).await?,
                None => Ok(()),
            };
            if let Err(refusal) = checked {
                return self.refuse(&request, &refusal).await;
            }
            // Apart, so that other requests need no room for it.
            if let Some(next) = Box::pin(send_upload(&mut self, &request, destination)).await? {
                return Ok(next);
            }
        }
        let mut share = None;
        let read = self.read_body(&request, endpoint, &mut share).await?;
        let started = Instant::now() - request.waited;
        request.started.set(started);
        let timeout = request.timeout();
        let mut deadline = started + timeout;
        let read = read.and_then(|bytes| {
            let refused = destination.policies().and_then(|(policies, outcome)| policies.refuse_body(outcome, &bytes));
            refused.map_or(Ok(bytes), Err)
        });
        let read = read.map(|bytes| Arc::new(RequestBody::new(bytes, share)));
        let read = match (read, validation) {
            (Ok(sent), Some(validation)) => {
                let checked = self.validate(&request, destination, validation, &sent).await?;
                if destination.policies().is_some_and(|(policies, _)| policies.only_reports()) {
                    // The handler has the time that it has without a check.
                    deadline = Instant::now() + timeout;
                }
                checked.map(|()| sent)
            }
            (read, _) => read,
        };
        let sent = match read {
            Ok(sent) => sent,
            Err(refusal) => return self.refuse(&request, &refusal).await,
        };
        self.client.release_memory();
        let socket_head = socket_head.as_deref().filter(|_| matches!(request.upgrade, Some(Ok(_))));
        let outcome = endpoint.request(head, &sent, self.reply, deadline, *place, socket_head).await;
        // A handler that has answered needs no more of it than what is being written.
        drop(sent);
        if let (Err(Failure::NoSocket), Some(Err(refusal))) = (&outcome, &request.upgrade) {
            self.count_finished(&request, refusal.status, refusal.body().len(), Some(refusal), None);
            return self.write_refusal(&request, refusal, request.keep_alive).await;
        }
        let refusal = match outcome {
            Ok(HandlerAnswer::Streamed(streamed, _active)) if streamed.head.status == SWITCHING => {
                return Box::pin(run_websocket(&mut self, &request, streamed)).await;
            }
            Ok(HandlerAnswer::Streamed(streamed, _active)) => {
                // Apart, so that other requests need no room for it.
                return Box::pin(send_stream(&mut self, &request, streamed, None)).await;
            }
            Ok(HandlerAnswer::Whole(answer)) => {
                match self.respond(&request, endpoint, answer, request.keep_alive).await? {
                    Ok(next) => return Ok(next),
                    Err(refusal) => refusal,
                }
            }
            Err(failure) => refusal_of(failure, self.thread, endpoint, state, &request.id),
        };
        self.count_finished(&request, refusal.status, refusal.body().len(), Some(&refusal), None);
        self.write_refusal(&request, &refusal, request.keep_alive).await
    }

    /// Checks what the policy `validate` says of a request. A client that has gone is not checked any further.
    async fn validate(
        &self,
        request: &ReceivedRequest,
        destination: &Destination,
        validation: Result<PartialCheck, CheckSkipped>,
        body: &Arc<RequestBody>,
    ) -> Result<Result<(), Refusal>, StreamError> {
        let Some((policies, outcome)) = destination.policies() else { return Ok(Ok(())) };
        let Destination { endpoint, state, .. } = destination;
        let memory = endpoint.request_memory(&self.thread.memory);
        let only_reports = policies.only_reports();
        let deadline = request.started.get() + policies.check_time(request.timeout());
        let checked = match validation {
            Ok(check) => {
                let check = policies.validate(check, body.clone(), memory, &endpoint.shared.id, deadline);
                self.client.until_client_resets(check).await?
            }
            Err(skipped) => Err(skipped),
        };
        // A handler would be taken for one that does not answer.
        let checked = checked.and_then(|verdict| match Instant::now() >= deadline {
            true if !only_reports => Err(CheckSkipped::Expired),
            _ => Ok(verdict),
        });
        Ok(match checked {
            Ok(Verdict::Fits) => Ok(()),
            Ok(Verdict::Reported(problems)) => {
                let _ = outcome.reported.set(problems);
                Ok(())
            }
            Ok(Verdict::Refused(refusal)) => Err(refusal),
            Err(skipped) if only_reports => {
                let _ = outcome.reported.set(format!("not checked: {skipped}"));
                Ok(())
            }
            Err(skipped) => {
                let refusal = skipped.refusal(state.limits.timeout_ms.into());
                let (endpoint_id, reason) = (&*endpoint.shared.id, &*refusal.message);
                let fields = json!({ "request_id": request.id, "endpoint_id": endpoint_id, "reason": reason });
                self.thread.supervisor.log(Level::Warn, fields, "request was not checked");
                Err(refusal)
            }
        })
    }

    /// Reads the body. What it takes of memory is in `share`.
    async fn read_body(
        &mut self,
        request: &ReceivedRequest,
        endpoint: &Endpoint,
        share: &mut Option<MemoryShare>,
    ) -> Result<Result<Vec<u8>, Refusal>, StreamError> {
        let own = request.to.as_ref().ok().and_then(Destination::body_limit);
        let limit = own.unwrap_or(usize::MAX).min(self.thread.settings.body_limit);
        let body_too_large = || match own {
            Some(own) if own == limit => Refusal { policy: Some("body_limit"), ..Refusal::body_too_large(limit) },
            _ => Refusal::body_too_large(limit),
        };
        let mut bytes = Vec::new();
        if self.client.is_complete() {
            return Ok(Ok(bytes));
        }
        if matches!(request.framing, Framing::Length(length) if length > limit as u64) {
            return Ok(Err(body_too_large()));
        }
        self.client.begin_body().await?;
        while !self.client.is_complete() {
            self.client.read_body(&mut bytes, usize::MAX).await?;
            if bytes.len() > limit {
                return Ok(Err(body_too_large()));
            }
            if bytes.len() > FREE_BYTES
                && !share.get_or_insert_with(|| endpoint.request_memory(&self.thread.memory)).set(bytes.len())
            {
                return Ok(Err(Refusal::out_of_memory()));
            }
        }
        Ok(Ok(bytes))
    }

    /// Sends the answer of a handler; refused when there is no memory to hold it meanwhile.
    pub(super) async fn respond(
        &mut self,
        request: &ReceivedRequest,
        endpoint: &Endpoint,
        answer: Answer,
        keep_alive: bool,
    ) -> Result<Result<Next, Refusal>, StreamError> {
        let Answer { head, mut body } = answer;
        let has_body = head.status != 204 && head.status != 304;
        // All of it is in memory until it is written, also what a status without a body does not send.
        let held = head.lines.len() + head.host_lines.len() + body.as_slice().len();
        let share = (held > FREE_BYTES).then(|| endpoint.memory_for_answer(&mut body, held, &self.thread.memory));
        if let Some(None) = share {
            return Ok(Err(Refusal::out_of_memory()));
        }
        let mut body = if has_body { body.as_slice() } else { b"" };
        let mut lines = Cow::Borrowed(&head.lines[..]);
        let packed;
        if let Some((policies, outcome)) = request.to.as_ref().ok().and_then(Destination::policies) {
            let encoding = policies.encoding(outcome, head.status, &lines, body.len());
            // Held beside the body while it is written.
            let room = encoding.and_then(|_| {
                let mut share = endpoint.answer_memory(&self.thread.memory);
                share.set(body.len()).then_some(share)
            });
            if let (Some(encoding), Some(_room)) = (encoding, &room) {
                packed = policies::compressed(body, encoding).await;
                if let Some(packed) = &packed {
                    lines = lines_for_encoding(&lines, encoding).into();
                    body = packed;
                }
            }
            lines = policies.response_lines(outcome, lines, &head.host_lines);
        }
        self.thread.answered_by_handler();
        self.count_finished(request, head.status, body.len(), None, None);
        let response = ResponseHead {
            status: head.status,
            lines: &lines,
            has_date: head.has_date,
            request_id: &request.id,
            transport_lines: self.transport_lines(&lines),
            persistence: self.persistence(request, keep_alive),
            content_length: has_body.then_some(body.len()),
        };
        let sent = if request.is_head() { b"" } else { body };
        let next = self.client.send(response, sent).await;
        drop(share);
        next.map(Ok)
    }

    /// Answers a request that no handler gets.
    pub(super) async fn refuse(&mut self, request: &ReceivedRequest, refusal: &Refusal) -> Result<Next, StreamError> {
        let is_complete = self.client.drop_small_body().await?;
        match request.to {
            Ok(_) => {
                self.reply.version.set(None);
                self.count_finished(request, refusal.status, refusal.body().len(), Some(refusal), None);
            }
            Err(_) => match refusal.policy {
                Some(policy) => self.thread.answered_by(policy),
                None => self.thread.refused(refusal.status),
            },
        }
        let next = self.write_refusal(request, refusal, request.keep_alive && is_complete).await?;
        if !is_complete {
            self.client.drop_rest_of_body().await;
        }
        Ok(next)
    }

    async fn write_refusal(
        &mut self,
        request: &ReceivedRequest,
        refusal: &Refusal,
        keep_alive: bool,
    ) -> Result<Next, StreamError> {
        let body = refusal.body();
        let mut lines = format!("{}{}", refusal.content_type(), refusal.lines);
        if let Some((policies, outcome)) = request.to.as_ref().ok().and_then(Destination::policies) {
            lines = policies.own_lines(outcome, &lines);
        }
        let response = ResponseHead {
            status: refusal.status,
            lines: lines.as_bytes(),
            has_date: false,
            request_id: &request.id,
            transport_lines: self.transport_lines(lines.as_bytes()),
            persistence: self.persistence(request, keep_alive),
            content_length: (refusal.status != 204).then_some(body.len()),
        };
        self.client.send(response, if request.is_head() { b"" } else { &body }).await
    }

    /// A handler, or a policy, may say something else.
    pub(super) fn transport_lines(&self, lines: &[u8]) -> &'a str {
        let name = b"strict-transport-security:";
        let says = |line: &[u8]| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name);
        match self.thread.strict_transport.as_deref() {
            Some(line) if self.client.is_secure() && !lines.split(|&byte| byte == b'\n').any(says) => line,
            _ => "",
        }
    }

    pub(super) fn persistence(&self, request: &ReceivedRequest, keep_alive: bool) -> Persistence {
        match keep_alive && !self.thread.guard.is_draining() {
            false => Persistence::Close,
            true if request.is_old => Persistence::KeepAlive,
            true => Persistence::Default,
        }
    }

    /// Counts a request of an endpoint, and tells of it; `bytes` is the length of the response's body, and `cut` says
    /// why there is no more of it.
    pub(super) fn count_finished(
        &self,
        request: &ReceivedRequest,
        status: u16,
        bytes: usize,
        refusal: Option<&Refusal>,
        cut: Option<&str>,
    ) {
        let Ok(destination) = &request.to else { return };
        let Destination { endpoint, span, .. } = destination;
        let duration = request.started.get().elapsed();
        endpoint.count_finished(status, duration);
        if let Some(policy) = refusal.and_then(|refusal| refusal.policy) {
            self.thread.answered_by(policy);
        }
        let reported = destination.policy_outcome.as_ref().and_then(|policy_outcome| policy_outcome.reported.get());
        if reported.is_some() {
            self.thread.reported_by("validate");
        }
        let finished = FinishedRequest {
            endpoint,
            request_id: &request.id,
            span,
            method: request.method,
            path: &request.path,
            client_ip: request.client_ip,
            scheme: request.scheme,
            status,
            bytes,
            duration,
            version: self.reply.version.get(),
            refusal,
            cut,
            identity: destination.identity(),
            reported: reported.map(|problems| &**problems),
        };
        intervals::count(self.thread, &finished);
        entries::report(self.thread, &finished);
    }
}
