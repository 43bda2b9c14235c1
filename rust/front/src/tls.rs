//! TLS, as the front uses it. A program that has it (`rust/front-tls`) brings it along.
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The certificate of a host.
#[derive(Deserialize)]
pub struct Certificate {
    pub host: Box<str>,
    /// Its own, and those up to one that clients know; PEM.
    pub chain: String,
    /// PEM.
    pub key: String,
}

/// A handshake of a server.
pub type Handshake = Pin<Box<dyn Future<Output = io::Result<Box<dyn SecureStream>>>>>;

/// Makes connections secure.
pub trait Tls: Send + Sync {
    /// Replaces all certificates. Returns what is wrong with those that cannot be used.
    fn set_certificates(&self, certificates: Vec<Certificate>) -> Vec<String>;

    /// Replaces the certificates that are shown to ACME servers only (TLS-ALPN-01, RFC 8737). Returns what is wrong
    /// with those that cannot be used.
    fn set_challenges(&self, certificates: Vec<Certificate>) -> Vec<String>;

    /// Begins a connection.
    fn accept(&self, tcp: TcpStream) -> Handshake;
}

/// A connection with TLS.
pub trait SecureStream: AsyncRead + AsyncWrite + Unpin {
    /// What it runs over.
    fn tcp(&self) -> &TcpStream;

    /// Whether client and server have agreed on HTTP/2.
    fn is_http2(&self) -> bool;
}

/// The connection of a client.
pub enum Transport {
    Plain(TcpStream),
    Secure(Box<dyn SecureStream>),
}

impl Transport {
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Secure(secure) => secure.tcp(),
        }
    }

    pub fn is_secure(&self) -> bool {
        matches!(self, Self::Secure(_))
    }

    pub fn is_http2(&self) -> bool {
        matches!(self, Self::Secure(secure) if secure.is_http2())
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Self::Secure(secure) => Pin::new(secure).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Self::Secure(secure) => Pin::new(secure).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, slices),
            Self::Secure(secure) => Pin::new(secure).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(tcp) => tcp.is_write_vectored(),
            Self::Secure(secure) => secure.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Secure(secure) => Pin::new(secure).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Secure(secure) => Pin::new(secure).poll_shutdown(cx),
        }
    }
}
