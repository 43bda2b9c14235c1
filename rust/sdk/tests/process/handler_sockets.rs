//! The handler of the tests of WebSockets.

use rust_edge_gateway_sdk::prelude::*;

fn handle(mut socket: WebSocket) -> Result<(), HandlerError> {
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
            assert!(socket.accept().is_err() && socket.send("x").is_err());
        }
        "/closes" => socket.close(4000, "enough")?,
        "/fails" => {
            socket.recv();
            return Err(HandlerError::Internal("on purpose".into()));
        }
        "/panics" => {
            socket.recv();
            panic!("secret detail");
        }
        "/much" => {
            for n in 0..u8::MAX {
                socket.send(vec![n; 10_000])?;
            }
        }
        _ => {
            while let Some(message) = socket.recv() {
                match message {
                    Message::Close(_) => {}
                    other => socket.send(other)?,
                }
            }
        }
    }
    Ok(())
}

handler_ws!(handle);
