//! The front of a gateway with TLS. It is a program of its own, so that a first start without TLS does not build
//! rustls.
mod certificates;
mod tls;

fn main() {
    edge_front::run(Some(std::sync::Arc::new(tls::Rustls::new())));
}
