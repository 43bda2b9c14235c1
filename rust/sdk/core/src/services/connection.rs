//! One connection with the actor host, or the process of a service. One call at a time, on the thread that makes it: a
//! write, then a read that waits. No thread has to be woken for an answer, which is what makes small calls fast.

use super::call::Call;
use super::connection_pool::Address;
use super::failure::ConnectionError;
use super::incoming::{Body, Incoming, Received};
use super::{reply, socket};
use crate::runtime;
use crate::wire::frame::{self, Kind};
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// A payload up to this size is copied behind its head; a larger one is written from where it is.
const COPY_BYTES: usize = 16 * 1024;
/// A buffer grown beyond this is freed.
const KEEP_BYTES: usize = 4 * COPY_BYTES;
/// The actor host enforces deadlines. It is given this much longer to say that one has passed.
const GRACE: Duration = Duration::from_secs(2);
/// The number of the frame with the token; those of calls are others.
const TOKEN_NUMBER: u32 = 0;

/// A connection, used by one call at a time.
pub struct Connection {
    pub address: Arc<Address>,
    stream: UnixStream,
    /// Frames to be written: that of the token is sent with the first call.
    out: Vec<u8>,
    incoming: Incoming,
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
            incoming: Incoming::new(),
            last_number: TOKEN_NUMBER,
            default_deadline,
            limit: Duration::ZERO,
        })
    }

    /// Whether the other side is still there, as far as one can know without asking.
    pub fn is_usable(&self) -> bool {
        self.incoming.is_empty() && socket::is_quiet(&self.stream)
    }

    /// Makes a call, and waits for its answer: the head, and the body.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn exchange(&mut self, call: &Call<'_>) -> Result<(&[u8], Body<'_>), ConnectionError> {
        let limit = call.deadline.unwrap_or(self.default_deadline) + GRACE;
        self.set_limit(limit).map_err(ConnectionError::Unsent)?;
        self.last_number = self.last_number.checked_add(1).unwrap_or(TOKEN_NUMBER + 1);
        call.write_head(self.last_number, &mut self.out);
        let received = if call.payload.len() > COPY_BYTES {
            runtime::blocking(|| {
                self.send(call.payload)?;
                receive(&self.stream, &mut self.incoming, self.last_number)
            })
        } else {
            self.out.extend_from_slice(call.payload);
            self.send(&[])?;
            let Connection { stream, incoming, last_number, .. } = self;
            runtime::reading(stream, limit, || receive(stream, incoming, *last_number))
        };
        let received = received.map_err(|error| match error {
            ConnectionError::TimedOut(_) => ConnectionError::TimedOut(limit),
            other => other,
        })?;
        Ok(self.incoming.open(received))
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
fn receive(stream: &UnixStream, incoming: &mut Incoming, number: u32) -> Result<Received, ConnectionError> {
    loop {
        let received = incoming.next(stream)?;
        match received.number {
            answered if answered == number => return Ok(received),
            TOKEN_NUMBER => {
                let (head, _) = incoming.open(received);
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
