//! The least that a request costs: hyper answers by itself, in one thread; with `?bytes=` a body of so many, in pieces.
//! Prints its port.
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

/// The same as of the handler that is measured.
const BODY: &[u8] = br#"{"hello":"ada","from":"a handler"}"#;

/// A body in pieces, of a length that the client is not told.
struct Pieces {
    left: usize,
}

const PIECE: &[u8] = &[b'x'; 32 * 1024];

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.left.min(PIECE.len());
        self.left -= length;
        Poll::Ready((length > 0).then(|| Ok(Frame::data(Bytes::from_static(&PIECE[..length])))))
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Either<Full<Bytes>, Pieces>>, Infallible> {
    if let Some(bytes) = request.uri().query().and_then(|query| query.strip_prefix("bytes=")?.parse().ok()) {
        return Ok(Response::new(Either::Right(Pieces { left: bytes })));
    }
    let mut response = Response::new(Either::Left(Full::new(Bytes::from_static(BODY))));
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
