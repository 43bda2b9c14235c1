//! The least that a request costs: hyper answers by itself, in one thread. Prints its port.
use std::convert::Infallible;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

/// The same as of the handler that is measured.
const BODY: &[u8] = br#"{"hello":"ada","from":"a handler"}"#;

async fn answer(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(BODY)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert("x-request-id", HeaderValue::from_static("a-request"));
    Ok(response)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    LocalSet::new()
        .run_until(async {
            loop {
                let (connection, _) = listener.accept().await?;
                connection.set_nodelay(true)?;
                spawn_local(http1::Builder::new().serve_connection(TokioIo::new(connection), service_fn(answer)));
            }
        })
        .await
}
