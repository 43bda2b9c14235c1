//! Opens a connection: TCP, TLS, and the login.
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::failure::Failure;
use super::login::{Session, log_in};
use super::messages;
use super::target::Target;
use super::tls::{Encryption, handshake_failure};

/// How long an address may take when there is another one to try.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout of a cancel request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A connection, encrypted or not.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Opens a connection and logs in. The caller limits the time.
pub async fn connect(target: &Target, encryption: &Encryption) -> Result<(Stream, Session), Failure> {
    let mut stream = connect_tcp(&target.config.host, target.config.port).await?;
    let mut stream = match encryption {
        Encryption::None => Stream::Plain(stream),
        Encryption::Tls(config) => {
            stream.write_all(&SSL_REQUEST).await?;
            // Not one byte more: what follows must be encrypted.
            let mut answer = [0];
            stream.read_exact(&mut answer).await?;
            match answer[0] {
                b'S' => {}
                b'N' => return Err(Failure::NoTls),
                _ => return Err(Failure::Other("There was an error establishing an SSL connection".to_owned())),
            }
            let name = ServerName::try_from(target.config.host.clone())
                .map_err(|_| Failure::Other("the host is not a valid name".to_owned()))?;
            let connecting = TlsConnector::from(config.clone()).connect(name, stream);
            Stream::Tls(Box::new(connecting.await.map_err(handshake_failure)?))
        }
    };
    let session = log_in(&mut stream, target).await?;
    Ok((stream, session))
}

/// Tries all addresses of the host in order; the error is that of the first.
async fn connect_tcp(host: &str, port: u16) -> Result<TcpStream, Failure> {
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await.map_err(|error| unknown_host(&error))?.collect();
    let mut first = None;
    for (index, address) in addresses.iter().enumerate() {
        let connecting = connect_to(*address);
        let connected = if index + 1 == addresses.len() {
            connecting.await
        } else {
            timeout(ADDRESS_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.map_or(Failure::UnknownHost { is_temporary: false }, Failure::Io))
}

async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_nodelay(true)?;
    socket.set_keepalive(true)?;
    socket.connect(address).await
}

/// The standard library tells the errors of a look-up only as text.
fn unknown_host(error: &io::Error) -> Failure {
    let text = error.to_string();
    Failure::UnknownHost { is_temporary: text.contains("Temporary failure") || text.contains("Try again") }
}

/// Asks the server to cancel the statement of a connection. Best effort: the server does not answer it.
pub async fn cancel(target: &Target, key: &[u8]) {
    let asking = async {
        let mut stream = connect_tcp(&target.config.host, target.config.port).await?;
        stream.write_all(&messages::cancel(key)).await?;
        stream.shutdown().await?;
        // It is read until the server closes it, which it does when it has cancelled.
        let mut rest = [0; 64];
        while stream.read(&mut rest).await? > 0 {}
        Ok::<_, Failure>(())
    };
    // The statement then ends when the server sees that its connection is closed.
    let _ = timeout(CANCEL_TIMEOUT, asking).await;
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
