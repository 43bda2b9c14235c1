//! A connection to the server, and one statement on it at a time, in the extended query protocol. Rows become JSON text
//! as they arrive, and statements are prepared once per connection.
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::mem::take;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use edge_service::memory::{MemoryBudget, Share};
use edge_service::sql::no_memory;
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::connect::Stream;
use super::failure::Failure;
use super::login::Session;
use super::messages::{self, Members, Split, TERMINATE, split, too_long, unexpected};
use super::prepared::{PreparedStatements, Use};
use super::statement::{Progress, Sink, StatementAnswer};
use super::types::Types;
use crate::sql::Param;

/// Room for what is received with one read. All connections share it.
const READ_BYTES: usize = 64 * 1024;
/// A connection may receive this much between two statements: notices, and changed settings.
const MAX_IDLE_BYTES: usize = 1024 * 1024;
/// Settings whose change is tracked one by one.
const MAX_CHANGED: usize = 64;
/// A buffer that a large statement has made is not kept.
const MAX_KEPT_BYTES: usize = 64 * 1024;

/// What the connections of a pool share.
pub struct Common {
    /// The largest message that the server may send.
    pub message_limit: usize,
    pub memory: Arc<MemoryBudget>,
    pub types: Types,
    /// Empty between two reads.
    scratch: RefCell<Vec<u8>>,
}

impl Common {
    pub fn new(message_limit: usize, memory: Arc<MemoryBudget>) -> Self {
        Self { message_limit, memory, types: Types::default(), scratch: RefCell::default() }
    }
}

/// Ends the statement of a connection from outside.
#[derive(Default)]
pub struct Signal {
    is_closed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Signal {
    pub fn close(&self) {
        self.is_closed.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn watch(&self, cx: &Context<'_>) -> Result<(), Failure> {
        if self.is_closed.get() {
            return Err(Failure::Closed);
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Ok(())
    }
}

pub struct Connection {
    stream: Stream,
    common: Rc<Common>,
    signal: Rc<Signal>,
    /// The beginning of a message that has not come completely.
    held: Vec<u8>,
    /// The part of the memory of the process that `held` takes.
    share: Share,
    /// How many bytes that message, or its header, has.
    expected: usize,
    out: Vec<u8>,
    /// Bytes of `out` that were written.
    written: usize,
    prepared: PreparedStatements,
    settings: HashMap<Vec<u8>, Vec<u8>>,
    /// Those that do not have the value that they had at the beginning.
    changed: HashSet<Vec<u8>>,
    key: Vec<u8>,
    /// The status of the transaction: `I`, `T`, or `E` after a failed statement.
    status: u8,
    is_busy: bool,
    is_broken: bool,
    idle_bytes: usize,
}

impl Connection {
    pub fn new(stream: Stream, session: Session, common: Rc<Common>, signal: Rc<Signal>) -> Self {
        let Session { settings, key, status, rest } = session;
        Self {
            stream,
            share: Share::new(common.memory.clone()),
            common,
            signal,
            held: rest,
            expected: 0,
            out: Vec::new(),
            written: 0,
            prepared: PreparedStatements::default(),
            settings,
            changed: HashSet::new(),
            key,
            status,
            is_busy: false,
            is_broken: false,
            idle_bytes: 0,
        }
    }

    /// Whether the answer to a statement has not come completely.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Whether another call may use it: no statement and no transaction is open, and the settings have their initial
    /// values.
    pub fn is_clean(&self) -> bool {
        !self.is_busy && !self.is_broken && self.status == b'I' && self.changed.is_empty()
    }

    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The key for a cancel request.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Sends a statement, and receives its answer. When that is dropped before its end, the connection remains busy.
    pub async fn run(&mut self, sql: &Arc<str>, params: &[Param], sink: Sink) -> Result<StatementAnswer, Failure> {
        if self.is_busy || self.is_broken {
            return Err(Failure::Closed);
        }
        let Use { name, is_new, columns } = self.prepared.begin(sql, &mut self.out);
        if is_new {
            messages::parse(&mut self.out, &name, sql);
        }
        messages::execute(&mut self.out, &name, params, is_new);
        let mut progress = Progress::new(sink, columns, &self.common);
        self.is_busy = true;
        let answered = poll_fn(|cx| self.poll(cx, Some(&mut progress))).await;
        // A server that has not closed the connection may still be busy with it.
        self.is_busy = matches!(answered, Err(Failure::Call(_) | Failure::Garbled | Failure::Other(_)));
        self.is_broken = answered.is_err();
        self.idle_bytes = 0;
        if let Some(failure) = progress.failure.take() {
            self.prepared.failed(sql, name, is_new, failure.is_stale_plan());
            return Err(failure);
        }
        answered?;
        if is_new {
            self.prepared.add(sql, name, progress.columns());
        }
        Ok(progress.finish())
    }

    /// Receives what comes between statements, until the connection is lost.
    pub fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        match ready!(self.poll(cx, None)) {
            Ok(()) => Poll::Ready(Failure::Garbled),
            Err(failure) => Poll::Ready(failure),
        }
        .map(|failure| {
            self.is_broken = true;
            failure
        })
    }

    /// Tells the server that it ends, if that can be done at once.
    pub fn terminate(mut self) {
        if self.is_busy || self.is_broken {
            return;
        }
        self.out.extend_from_slice(TERMINATE);
        let _ = self.poll_send(&mut Context::from_waker(Waker::noop()));
    }

    /// Writes and reads until the statement is answered; without a statement, for ever.
    fn poll(&mut self, cx: &mut Context<'_>, mut progress: Option<&mut Progress>) -> Poll<Result<(), Failure>> {
        self.signal.watch(cx)?;
        if self.poll_send(cx).is_err() {
            // Why is in what the server has sent before it closed the connection.
            self.out.clear();
            self.written = 0;
        }
        // What has come with the end of the previous statement.
        if !self.held.is_empty() && self.held.len() >= self.expected {
            let held = take(&mut self.held);
            if self.receive(held, true, progress.as_deref_mut())? {
                return Poll::Ready(Ok(()));
            }
        }
        loop {
            let is_shared = self.held.is_empty();
            let mut bytes = if is_shared { self.common.scratch.take() } else { take(&mut self.held) };
            let before = bytes.len();
            // Not more than the message needs: it is received completely before it is read.
            let room = self.expected.saturating_sub(before).min(before).max(READ_BYTES);
            bytes.reserve_exact(if is_shared { READ_BYTES } else { room });
            if !is_shared && !self.share.set(bytes.capacity() - READ_BYTES) {
                return Poll::Ready(Err(no_memory().into()));
            }
            let read = pin!(self.stream.read_buf(&mut bytes)).poll(cx);
            let count = match read {
                Poll::Pending => {
                    self.keep(bytes, is_shared);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Failure::Closed)),
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            };
            match progress.as_deref_mut() {
                Some(progress) => progress.received(count)?,
                None => {
                    self.idle_bytes += count;
                    if self.idle_bytes > MAX_IDLE_BYTES {
                        return Poll::Ready(Err(Failure::Garbled));
                    }
                }
            }
            if self.receive(bytes, !is_shared, progress.as_deref_mut())? {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> std::io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        while self.written < self.out.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.out[self.written..]) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(std::io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        // Only TLS has something to flush; until it has, `out` remains, so that this is done again.
        if Pin::new(&mut self.stream).poll_flush(cx)?.is_ready() {
            self.out.clear();
            self.out.shrink_to(MAX_KEPT_BYTES);
            self.written = 0;
        }
        Ok(())
    }

    /// Reads the messages in `bytes`, and keeps what is not complete. Returns whether the statement is answered.
    fn receive(
        &mut self,
        mut bytes: Vec<u8>,
        is_own: bool,
        mut progress: Option<&mut Progress>,
    ) -> Result<bool, Failure> {
        let limit = self.common.message_limit;
        let mut taken = 0;
        let mut is_answered = false;
        while !is_answered {
            match split(&bytes[taken..], limit)? {
                Split::Incomplete { bytes } => {
                    self.expected = bytes;
                    break;
                }
                Split::TooLong { bytes } => return Err(too_long(bytes, limit)),
                Split::Message { tag, body, bytes } => {
                    taken += bytes;
                    is_answered = self.on_message(tag, body, progress.as_deref_mut())?;
                }
            }
        }
        if is_answered {
            self.expected = 0;
        }
        if is_own {
            bytes.drain(..taken);
            if taken > 0 {
                bytes.shrink_to(READ_BYTES);
            }
            if bytes.is_empty() {
                bytes = Vec::new();
            }
            // It is less than before.
            self.share.set(bytes.capacity().saturating_sub(READ_BYTES));
            self.held = bytes;
        } else {
            self.held.extend_from_slice(&bytes[taken..]);
            self.keep(bytes, true);
        }
        Ok(is_answered)
    }

    fn keep(&mut self, mut bytes: Vec<u8>, is_shared: bool) {
        if is_shared {
            bytes.clear();
            self.common.scratch.replace(bytes);
        } else {
            self.held = bytes;
        }
    }

    /// Returns whether the statement is answered.
    fn on_message(&mut self, tag: u8, body: &[u8], progress: Option<&mut Progress>) -> Result<bool, Failure> {
        match (tag, progress) {
            (b'S', _) => self.on_setting(body).ok_or(Failure::Garbled)?,
            (b'Z', Some(_)) => {
                self.status = *body.first().ok_or(Failure::Garbled)?;
                return Ok(true);
            }
            (_, Some(progress)) => progress.on_message(tag, body, &self.common.types)?,
            (_, None) => unexpected(tag, body).map_or(Ok(()), Err)?,
        }
        Ok(false)
    }

    fn on_setting(&mut self, body: &[u8]) -> Option<()> {
        let mut members = Members(body);
        let (name, value) = (members.text()?, members.text()?);
        if self.settings.get(name).is_some_and(|initial| initial == value) {
            self.changed.remove(name);
        } else if self.changed.len() < MAX_CHANGED {
            self.changed.insert(name.to_vec());
        }
        Some(())
    }
}
