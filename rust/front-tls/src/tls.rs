//! TLS 1.3 and 1.2 by rustls, with its defaults: no renegotiation, no compression, forward secrecy always.
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use edge_front::{Certificate, Handshake, SecureStream, Tls};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::certificates::{ACME, Certificates, ServedCertificates};

/// The name of HTTP/2 between clients and servers (ALPN).
const HTTP2: &[u8] = b"h2";

pub struct Rustls {
    provider: Arc<CryptoProvider>,
    /// All threads use the same.
    acceptor: RwLock<TlsAcceptor>,
    challenges: Arc<RwLock<Certificates>>,
}

impl Rustls {
    pub fn new() -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let challenges = Arc::<RwLock<Certificates>>::default();
        let shown = ServedCertificates { certificates: Certificates::default(), challenges: challenges.clone() };
        let acceptor = RwLock::new(acceptor(&provider, shown));
        Self { provider, acceptor, challenges }
    }
}

/// Each has sessions of its own: none is resumed with a certificate that has been replaced or deleted.
fn acceptor(provider: &Arc<CryptoProvider>, shown: ServedCertificates) -> TlsAcceptor {
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap_or_else(|error| panic!("rustls does not know its own versions: {error}"))
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(shown));
    config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec(), ACME.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

impl Tls for Rustls {
    /// Connections that are open keep theirs.
    fn set_certificates(&self, certificates: Vec<Certificate>) -> Vec<String> {
        let (certificates, problems) = Certificates::read(certificates);
        let acceptor =
            acceptor(&self.provider, ServedCertificates { certificates, challenges: self.challenges.clone() });
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        problems
    }

    /// Sessions of clients stay as they are.
    fn set_challenges(&self, certificates: Vec<Certificate>) -> Vec<String> {
        let (certificates, problems) = Certificates::read(certificates);
        *self.challenges.write().unwrap_or_else(PoisonError::into_inner) = certificates;
        problems
    }

    fn accept(&self, tcp: TcpStream) -> Handshake {
        let accept = self.acceptor.read().unwrap_or_else(PoisonError::into_inner).accept(tcp);
        Box::pin(async move {
            let stream = accept.await?;
            // The handshake is the answer to an ACME server; there is nothing more to say.
            if stream.get_ref().1.alpn_protocol() == Some(ACME) {
                return Err(io::Error::other("it was a challenge"));
            }
            Ok(Box::new(Secure(stream)) as Box<dyn SecureStream>)
        })
    }
}

struct Secure(TlsStream<TcpStream>);

impl SecureStream for Secure {
    fn tcp(&self) -> &TcpStream {
        self.0.get_ref().0
    }

    fn is_http2(&self) -> bool {
        self.0.get_ref().1.alpn_protocol() == Some(HTTP2)
    }
}

impl AsyncRead for Secure {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Secure {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
