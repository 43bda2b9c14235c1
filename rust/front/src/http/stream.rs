//! The socket of a client. Its guard ends what takes too long.
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::time::{Instant, timeout};

use super::client::Link;
use crate::guard::{CloseReason, Phase, Watch, WatchedConnection};
use crate::request::Refusal;
use crate::scratch;
use crate::tls::Transport;

/// Written at a time, so that other connections have their turn in between.
const WRITE_BYTES: usize = 128 * 1024;
/// Read at a time while no body is awaited: a client may send more requests than it is allowed memory for.
const FILL_BYTES: usize = 17 * 1024;
/// Memory up to this size is kept from one request to the next.
const KEPT_BYTES: usize = 4 * 1024;
/// How long what a client still sends is read, and the longest pause in it. If the connection were closed at once, a
/// client that is still sending would see a reset instead of the response.
const LINGER: Duration = Duration::from_secs(30);
/// How often it is looked whether a client has left of which nothing is read.
const LEFT_LOOK: Duration = Duration::from_millis(50);
const LINGER_IDLE: Duration = Duration::from_secs(1);

/// Why a connection cannot go on.
#[derive(Debug)]
pub enum StreamError {
    /// Nobody gets a response.
    Gone,
    /// This is its last response.
    Refused(Refusal),
}

impl From<Refusal> for StreamError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

pub struct ClientStream {
    transport: Transport,
    watched: WatchedConnection,
    /// What has arrived and is not part of a request taken before.
    pub buffered: Vec<u8>,
    /// When what arrives is not read any more, once nothing of it is wanted.
    latest: Option<Instant>,
}

impl ClientStream {
    pub fn new(transport: Transport, watched: WatchedConnection) -> Self {
        Self { transport, watched, buffered: Vec::new(), latest: None }
    }

    /// What it consists of, for another protocol than HTTP/1; the bytes have been read and not taken.
    pub fn into_parts(self) -> (Transport, WatchedConnection, Vec<u8>) {
        (self.transport, self.watched, self.buffered)
    }

    /// Whether client and server have agreed on HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.transport.is_http2()
    }

    /// The client is to see that the connection does not end as it should.
    pub fn reset_on_close(&self) {
        // What has not been sent is dropped.
        let _ = self.transport.tcp().set_zero_linger();
    }

    /// Waits for more of a request, and buffers it. Returns how many bytes, 0 at the end.
    pub async fn fill(&mut self) -> Result<usize, StreamError> {
        if self.buffered.is_empty() {
            // A connection on which nothing arrives has no memory for it.
            self.buffered = Vec::new();
        }
        poll_fn(|cx| self.poll_fill(cx)).await
    }

    /// Gives memory back that a large head or body has left.
    pub fn release_memory(&mut self) {
        if self.buffered.capacity() > KEPT_BYTES {
            self.buffered.shrink_to_fit();
        }
    }

    /// Buffers what has arrived already. Returns how many bytes, 0 for nothing.
    pub async fn fill_at_once(&mut self) -> Result<usize, StreamError> {
        poll_fn(|cx| match self.poll_fill(cx) {
            Poll::Pending => Poll::Ready(Ok(0)),
            ready => ready,
        })
        .await
    }

    /// Waits for more of a body behind what is in `bytes`: at most `limit` bytes. Returns how many, 0 at the end.
    pub async fn read_into(&mut self, bytes: &mut Vec<u8>, limit: usize) -> Result<usize, StreamError> {
        poll_fn(|cx| {
            let read = scratch::read_more(Pin::new(&mut self.transport), cx, bytes, limit);
            self.watched_read(read)
        })
        .await
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, StreamError>> {
        let read = scratch::with(|bytes| {
            let mut buffer = ReadBuf::new(&mut bytes[..FILL_BYTES]);
            ready!(Pin::new(&mut self.transport).poll_read(cx, &mut buffer))?;
            self.buffered.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(buffer.filled().len()))
        });
        self.watched_read(read)
    }

    /// What has arrived counts before what the guard says.
    fn watched_read(&self, read: Poll<io::Result<usize>>) -> Poll<Result<usize, StreamError>> {
        let watch = self.watch();
        match read {
            Poll::Ready(Ok(bytes)) => {
                watch.transferred(bytes);
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(StreamError::Gone)),
            Poll::Pending => match watch.close_reason() {
                None => Poll::Pending,
                Some(CloseReason::SlowSender) => Poll::Ready(Err(Refusal::too_slow().into())),
                Some(_) => Poll::Ready(Err(StreamError::Gone)),
            },
        }
    }

    /// Writes bytes; the client has to take them fast enough.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        self.write_vectored(&mut [IoSlice::new(bytes)]).await
    }

    /// Writes all of these one after the other; the client has to take them fast enough.
    pub async fn write_vectored(&mut self, mut slices: &mut [IoSlice<'_>]) -> Result<(), StreamError> {
        self.watch().begin(Phase::Response);
        // None that is empty is left at the beginning.
        IoSlice::advance_slices(&mut slices, 0);
        let mut turn = 0;
        while !slices.is_empty() {
            let written = poll_fn(|cx| self.poll_write(cx, slices)).await?;
            IoSlice::advance_slices(&mut slices, written);
            turn += written;
            if turn >= WRITE_BYTES && !slices.is_empty() {
                turn = 0;
                tokio::task::yield_now().await;
            }
        }
        if self.transport.is_secure() {
            // What TLS has taken may not be written yet.
            poll_fn(|cx| self.poll_flush(cx)).await?;
        }
        self.watch().begin(Phase::Unwatched);
        Ok(())
    }

    /// Writes something of the slices, of which the first is not empty.
    fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<Result<usize, StreamError>> {
        let transport = Pin::new(&mut self.transport);
        let written = match slices {
            [first, rest @ ..] if rest.is_empty() || first.len() > WRITE_BYTES => {
                transport.poll_write(cx, &first[..first.len().min(WRITE_BYTES)])
            }
            _ => transport.poll_write_vectored(cx, slices),
        };
        match written {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(StreamError::Gone)),
            Poll::Ready(Ok(written)) => self.watch().transferred(written),
            _ => {}
        }
        self.watched_write(written)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let flushed = Pin::new(&mut self.transport).poll_flush(cx);
        self.watched_write(flushed)
    }

    fn watched_write<T>(&self, written: Poll<io::Result<T>>) -> Poll<Result<T, StreamError>> {
        match written {
            Poll::Ready(Ok(written)) => Poll::Ready(Ok(written)),
            Poll::Ready(Err(_)) => Poll::Ready(Err(StreamError::Gone)),
            Poll::Pending => match self.watch().close_reason() {
                Some(CloseReason::SlowReceiver) => {
                    // Reset, or the kernel would keep sending buffered data for minutes.
                    let _ = self.transport.tcp().set_zero_linger();
                    Poll::Ready(Err(StreamError::Gone))
                }
                _ => Poll::Pending,
            },
        }
    }

    /// Resolves when the client has closed its sending side, or the connection, while nothing is read.
    pub async fn closed_by_client(&self) {
        loop {
            let ready = self.transport.tcp().ready(Interest::READABLE | Interest::ERROR).await;
            if ready.is_ok_and(|ready| ready.is_read_closed() || ready.is_error()) {
                return;
            }
            tokio::time::sleep(LEFT_LOOK).await;
        }
    }

    /// Says that nothing more is sent. TLS has something to write for that, and what it holds before: the client has to
    /// take it fast enough. What arrives is still read.
    pub async fn end(&mut self) -> Result<(), StreamError> {
        self.watch().begin(Phase::Response);
        poll_fn(|cx| {
            let ended = Pin::new(&mut self.transport).poll_shutdown(cx);
            self.watched_write(ended)
        })
        .await?;
        self.watch().begin(Phase::Unwatched);
        Ok(())
    }

    /// Closes the connection once the client has stopped sending. Nothing that it sends is read any more.
    pub async fn close(mut self) {
        self.buffered = Vec::new();
        // One that is reset has nothing to wait for.
        let is_reset = self.transport.tcp().linger().is_ok_and(|linger| linger == Some(Duration::ZERO));
        if !is_reset && self.end().await.is_ok() {
            self.drop_arriving(|_| false).await;
        }
    }

    /// Its next request has all the time again in which what it sends is dropped.
    pub fn restart_linger(&mut self) {
        self.latest = None;
    }

    /// Reads and drops what arrives, until `is_over`, or for a while since it was first called.
    pub async fn drop_arriving(&mut self, mut is_over: impl FnMut(&[u8]) -> bool) {
        self.watch().begin(Phase::Unwatched);
        let latest = *self.latest.get_or_insert_with(|| Instant::now() + LINGER);
        while Instant::now() < latest {
            let read = poll_fn(|cx| {
                scratch::with(|bytes| {
                    let mut buffer = ReadBuf::new(bytes);
                    match ready!(Pin::new(&mut self.transport).poll_read(cx, &mut buffer)) {
                        Ok(()) if !buffer.filled().is_empty() => Poll::Ready(is_over(buffer.filled())),
                        _ => Poll::Ready(true),
                    }
                })
            });
            match timeout(LINGER_IDLE, read).await {
                Ok(false) => {}
                Ok(true) | Err(_) => return,
            }
        }
    }
}

impl Link for ClientStream {
    fn is_secure(&self) -> bool {
        self.transport.is_secure()
    }

    fn watch(&self) -> &Watch {
        &self.watched.watch
    }

    /// A client that closes its sending side waits for its answer, and one that has closed all of it looks the same:
    /// only one that resets the connection is seen.
    async fn until_client_resets<T>(&self, work: impl Future<Output = T>) -> Result<T, StreamError> {
        tokio::select! {
            biased;
            outcome = work => Ok(outcome),
            _ = self.transport.tcp().ready(Interest::ERROR) => Err(StreamError::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::io::Write;
    use std::net::{self, Shutdown, TcpListener};
    use std::task::Waker;

    use tokio::net::TcpStream;
    use tokio::runtime::Builder;
    use tokio::task::yield_now;

    use super::*;
    use crate::guard::tests::guard;

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    fn connected() -> (ClientStream, net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let tcp = TcpStream::from_std(server).unwrap();
        (ClientStream::new(Transport::Plain(tcp), guard().watch(Waker::noop().clone())), client)
    }

    #[test]
    fn what_clients_send_ahead_takes_little_memory() {
        run(async {
            let (mut stream, mut client) = connected();
            client.write_all(&[b'x'; 60_000]).unwrap();
            assert!(stream.fill().await.unwrap() <= FILL_BYTES);
            assert!(stream.buffered.capacity() <= 2 * FILL_BYTES);
            stream.buffered.clear();
            stream.release_memory();
            assert_eq!(stream.buffered.capacity(), 0);
        });
    }

    #[test]
    fn work_ends_when_the_client_resets_the_connection_but_not_when_it_stops_sending() {
        run(async {
            for stops_sending in [false, true] {
                let (mut stream, client) = connected();
                if stops_sending {
                    client.shutdown(Shutdown::Write).unwrap();
                    assert_eq!(stream.fill().await.unwrap(), 0);
                }
                assert!(stream.until_client_resets(yield_now()).await.is_ok());
                client.set_nonblocking(true).unwrap();
                TcpStream::from_std(client).unwrap().set_zero_linger().unwrap();
                assert!(matches!(stream.until_client_resets(pending::<()>()).await, Err(StreamError::Gone)));
            }
        });
    }
}
