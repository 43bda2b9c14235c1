//! The same as `handler_sockets.rs`, for the async loop.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::{spawn, sync::watch};
use std::sync::LazyLock;

/// How many tasks that functions have left have learned of the end of their sockets.
static ENDED: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::channel(0).0);

async fn handle(mut socket: AsyncWebSocket) -> Result<(), HandlerError> {
    match socket.request().path.as_str() {
        "/refuses" => return socket.refuse(Response::text(403, "no")),
        "/missing" => return Err(HandlerError::NotFound),
        "/returns" => {}
        "/chooses" => {
            let protocol = socket.protocols().last().map(|name| name.to_string()).unwrap_or_default();
            socket.with_protocol(protocol).accept()?;
        }
        "/bad-header" => {
            let socket = socket.with_header("X Note", "v");
            assert!(socket.accept().is_err() && socket.send("x").await.is_err());
        }
        "/closes" => socket.close(4000, "enough").await?,
        "/leaves-a-task" => {
            let (sender, mut receiver) = socket.split()?;
            spawn(async move {
                sender.closed().await;
                ENDED.send_modify(|ended| *ended += 1);
            });
            receiver.recv().await;
        }
        "/awaits-that-task" => {
            ENDED.subscribe().wait_for(|&ended| ended > 0).await.unwrap();
        }
        "/fails" => {
            socket.recv().await;
            return Err(HandlerError::Internal("on purpose".into()));
        }
        "/panics" => {
            socket.recv().await;
            panic!("secret detail");
        }
        "/much" => {
            for n in 0..u8::MAX {
                socket.send(vec![n; 10_000]).await?;
            }
        }
        _ => {
            while let Some(message) = socket.recv().await {
                match message {
                    Message::Close(_) => {}
                    other => socket.send(other).await?,
                }
            }
        }
    }
    Ok(())
}

handler_ws_async!(handle);
