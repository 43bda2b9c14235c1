//! The same as `handler_sockets.rs`, for the async loop.

use rust_edge_gateway_sdk::prelude::*;

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
