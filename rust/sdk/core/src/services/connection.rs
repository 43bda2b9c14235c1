//! Connections with the actor host, or the process of a service; an [`Address`] keeps those that no call uses. One call
//! at a time, on the thread that makes it: a write, then a read that waits. No thread has to be woken for an answer,
//! which is what makes small calls fast.

use super::answer_reader::{AnswerBody, AnswerReader, ReceivedAnswer};
use super::call::Call;
use super::failure::ConnectionError;
use super::{reply, socket};
use crate::runtime::threads::lock;
use crate::runtime::workers::{blocking, reading};
use crate::wire::frame::{self, Kind};
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A payload up to this size is copied behind its head; a larger one is written from where it is.
const COPY_BYTES: usize = 16 * 1024;
/// A buffer grown beyond this is freed.
const KEEP_BYTES: usize = 4 * COPY_BYTES;
/// The actor host enforces deadlines. It is given this much longer to say that one has passed.
const GRACE: Duration = Duration::from_secs(2);
/// The number of the frame with the token; those of calls are others.
const TOKEN_NUMBER: u32 = 0;

/// More are closed after their call. As many as requests usually run at once, or busy handlers would connect again and
/// again.
const MAX_IDLE: usize = 64;

/// A connection, used by one call at a time.
pub struct Connection {
    pub address: Arc<Address>,
    stream: UnixStream,
    /// Frames to be written: that of the token is sent with the first call.
    out: Vec<u8>,
    answers: AnswerReader,
    last_number: u32,
    default_deadline: Duration,
    /// The time limit the socket has now; zero for none.
    limit: Duration,
}

impl Connection {
    /// Connects, within `limit`. The token goes out with the first call, in one write.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(address: &Arc<Address>, default_deadline: Duration, limit: Duration) -> io::Result<Connection> {
        let mut out = Vec::with_capacity(1024);
        let mut head = b"{\"token\":".to_vec();
        serde_json::to_writer(&mut head, &address.token).expect("a string is always JSON");
        head.push(b'}');
        out.extend_from_slice(&frame::header(Kind::Request, TOKEN_NUMBER, head.len(), 0));
        out.extend_from_slice(&head);
        Ok(Connection {
            address: Arc::clone(address),
            stream: socket::connect(&address.socket, limit + GRACE)?,
            out,
            answers: AnswerReader::new(),
            last_number: TOKEN_NUMBER,
            default_deadline,
            limit: Duration::ZERO,
        })
    }

    /// Whether the other side is still there, as far as one can know without asking.
    pub fn is_usable(&self) -> bool {
        self.answers.is_empty() && socket::is_quiet(&self.stream)
    }

    /// Makes a call, and waits for its answer: the head, and the body.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn exchange(&mut self, call: &Call<'_>) -> Result<(&[u8], AnswerBody<'_>), ConnectionError> {
        let limit = call.deadline.unwrap_or(self.default_deadline) + GRACE;
        self.set_limit(limit).map_err(ConnectionError::Unsent)?;
        self.last_number = self.last_number.checked_add(1).unwrap_or(TOKEN_NUMBER + 1);
        call.write_head(self.last_number, &mut self.out);
        let received = if call.payload.len() > COPY_BYTES {
            blocking(|| {
                self.send(call.payload)?;
                receive(&self.stream, &mut self.answers, self.last_number)
            })
        } else {
            self.out.extend_from_slice(call.payload);
            self.send(&[])?;
            let Connection { stream, answers, last_number, .. } = self;
            reading(stream, limit, || receive(stream, answers, *last_number))
        };
        let received = received.map_err(|error| match error {
            ConnectionError::TimedOut(_) => ConnectionError::TimedOut(limit),
            other => other,
        })?;
        Ok(self.answers.open(received))
    }

    /// Writes what waits in `out`, then `payload`.
    fn send(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        let mut written = 0;
        for part in [&self.out, payload] {
            let mut rest = part;
            while !rest.is_empty() {
                match (&self.stream).write(rest) {
                    Ok(n) => {
                        rest = &rest[n..];
                        written += n;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        return Err(ConnectionError::TimedOut(self.limit))
                    }
                    Err(error) if written == 0 => return Err(ConnectionError::Unsent(error)),
                    Err(error) => return Err(ConnectionError::Sending(error)),
                }
            }
        }
        if self.out.capacity() > KEEP_BYTES {
            self.out = Vec::new();
        } else {
            self.out.clear();
        }
        Ok(())
    }

    /// Sets the time limit of reads and writes, if it is another one than before.
    fn set_limit(&mut self, limit: Duration) -> io::Result<()> {
        if self.limit != limit {
            self.stream.set_read_timeout(Some(limit))?;
            self.stream.set_write_timeout(Some(limit))?;
            self.limit = limit;
        }
        Ok(())
    }
}

/// Reads the answer to a call.
fn receive(stream: &UnixStream, answers: &mut AnswerReader, number: u32) -> Result<ReceivedAnswer, ConnectionError> {
    loop {
        let received = answers.next(stream)?;
        match received.number {
            answered if answered == number => return Ok(received),
            TOKEN_NUMBER => {
                let (head, _) = answers.open(received);
                reply::check_token(head)?;
            }
            other => {
                return Err(ConnectionError::ProtocolViolation(format!(
                    "an answer to call {other}, which was not made"
                )))
            }
        }
    }
}

/// Where calls are answered, and the connections there that no call uses.
pub struct Address {
    pub socket: String,
    pub token: String,
    idle: Mutex<Idle<Connection>>,
}

impl Address {
    pub fn new(socket: String, token: String) -> Arc<Address> {
        Arc::new(Address { socket, token, idle: Mutex::new(Idle::new()) })
    }

    /// The connection that was used last and is still good.
    pub fn take(&self) -> Option<Connection> {
        loop {
            let connection = lock(&self.idle).take()?;
            if connection.is_usable() {
                return Some(connection);
            }
        }
    }

    /// Closes its connections, now and when their calls end: nothing else would, as each of them holds it.
    pub fn forget(&self) {
        let left = lock(&self.idle).close();
        // Closed without holding the lock.
        drop(left);
    }

    /// Keeps a connection for the next call, or closes it.
    pub fn keep(&self, connection: Connection) {
        let surplus = lock(&self.idle).put(connection);
        // Closed without holding the lock.
        drop(surplus);
    }

    /// Closes what was not needed since the last time.
    pub fn close_unneeded(&self) {
        let unneeded = lock(&self.idle).unneeded();
        // Closed without holding the lock.
        drop(unneeded);
    }

    /// Whether there is a connection that no call uses.
    pub fn has_idle(&self) -> bool {
        !lock(&self.idle).items.is_empty()
    }
}

/// A stack: what was used last is taken first, so that what is not needed stays at the bottom.
struct Idle<T> {
    items: Vec<T>,
    /// The fewest there were since the last check: as many were not needed since then.
    fewest: usize,
    /// Whether nothing is kept any more.
    is_closed: bool,
}

impl<T> Idle<T> {
    const fn new() -> Self {
        Idle { items: Vec::new(), fewest: 0, is_closed: false }
    }

    fn take(&mut self) -> Option<T> {
        let item = self.items.pop();
        self.fewest = self.fewest.min(self.items.len());
        item
    }

    /// Returns the item if there is no room for it.
    fn put(&mut self, item: T) -> Option<T> {
        if self.is_closed || self.items.len() == MAX_IDLE {
            return Some(item);
        }
        self.items.push(item);
        None
    }

    /// Removes all, and keeps nothing any more.
    fn close(&mut self) -> Vec<T> {
        self.is_closed = true;
        self.fewest = 0;
        std::mem::take(&mut self.items)
    }

    /// Removes what was not needed since the last check.
    fn unneeded(&mut self) -> Vec<T> {
        let unneeded = self.items.drain(..self.fewest).collect();
        self.fewest = self.items.len();
        unneeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_taken_first() {
        let mut idle = Idle::new();
        assert_eq!((idle.put(1), idle.put(2)), (None, None));
        assert_eq!((idle.take(), idle.take(), idle.take()), (Some(2), Some(1), None));
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut idle = Idle::new();
        let surplus: Vec<_> = (0..MAX_IDLE + 2).filter_map(|n| idle.put(n)).collect();
        assert_eq!(surplus, [MAX_IDLE, MAX_IDLE + 1]);
    }

    #[test]
    fn what_is_not_needed_between_two_checks_is_removed() {
        let mut idle = Idle::new();
        for n in 1..=4 {
            idle.put(n);
        }
        assert!(idle.unneeded().is_empty(), "all have just come");
        let used = idle.take().zip(idle.take());
        assert_eq!(used, Some((4, 3)));
        idle.put(3);
        idle.put(4);
        assert_eq!(idle.unneeded(), [1, 2]);
        assert_eq!(idle.unneeded(), [3, 4]);
        assert!(idle.unneeded().is_empty());
    }

    #[test]
    fn nothing_is_kept_once_it_is_closed() {
        let mut idle = Idle::new();
        idle.put(1);
        assert!(idle.unneeded().is_empty());
        assert_eq!(idle.close(), [1]);
        assert_eq!((idle.put(2), idle.take()), (Some(2), None));
        assert!(idle.unneeded().is_empty());
    }
}
