//! Async handlers with every kind of `?`.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio;

async fn load(id: i64) -> Result<JsonValue, std::io::Error> {
    tokio::task::yield_now().await;
    Ok(json!({"id": id}))
}

async fn handle(req: Request) -> Result<Response, HandlerError> {
    match (req.method.as_str(), req.path.as_str()) {
        ("GET", path) if path.starts_with("/items/") => show(&req).await,
        ("POST", "/items") => {
            let input: JsonValue = req.json()?;
            let (stored, sent) = tokio::join!(load(1), load(2));
            let stored = stored.map_err(|e| HandlerError::DatabaseError(e.to_string()))?;
            Ok(Response::created(json!({"input": input, "stored": stored, "sent": sent.is_ok()})))
        }
        _ => Err(HandlerError::MethodNotAllowed("GET or POST".into())),
    }
}

async fn show(req: &Request) -> Result<Response, HandlerError> {
    let id = req.require_path_param::<i64>("id")?;
    // Held across an await, and not Send.
    let boxed: Box<dyn std::error::Error> = "kept".into();
    let item = load(id).await.map_err(|e| HandlerError::StorageError(e.to_string()))?;
    eprintln!("{boxed}");
    Ok(Response::ok(item))
}

handler_loop_async_result!(handle);
