//! TLS 1.3 and 1.2 by rustls, with its defaults: no renegotiation, no compression, forward secrecy always.
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use edge_front::{Certificate, Handshake, SecureStream, Tls};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::certificates::Certificates;

pub struct Rustls {
    certificates: Arc<Certificates>,
    acceptor: TlsAcceptor,
}

impl Rustls {
    pub fn new() -> Self {
        let certificates = Arc::<Certificates>::default();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap_or_else(|error| panic!("rustls does not know its own versions: {error}"))
            .with_no_client_auth()
            .with_cert_resolver(certificates.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { certificates, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }
}

impl Tls for Rustls {
    fn set_certificates(&self, certificates: Vec<Certificate>) -> Vec<String> {
        self.certificates.set(certificates)
    }

    fn accept(&self, tcp: TcpStream) -> Handshake {
        let accept = self.acceptor.accept(tcp);
        Box::pin(async move { Ok(Box::new(Secure(accept.await?)) as Box<dyn SecureStream>) })
    }
}

struct Secure(TlsStream<TcpStream>);

impl SecureStream for Secure {
    fn tcp(&self) -> &TcpStream {
        self.0.get_ref().0
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

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
