//! `?` everywhere, and an error type of the handler's own.

use rust_edge_gateway_sdk::prelude::*;
use std::collections::HashMap;

enum ShopError {
    NoSuchItem(String),
    Taken,
    Refused,
}

impl From<ShopError> for HandlerError {
    fn from(error: ShopError) -> Self {
        match error {
            ShopError::NoSuchItem(name) => HandlerError::NotFoundMessage(format!("no item {}", name)),
            ShopError::Taken => HandlerError::Conflict("taken".into()),
            ShopError::Refused => HandlerError::Unauthorized("who are you?".to_string()),
        }
    }
}

fn item(name: &str) -> Result<JsonValue, ShopError> {
    match name {
        "" => Err(ShopError::Refused),
        "sold" => Err(ShopError::Taken),
        "none" => Err(ShopError::NoSuchItem(name.into())),
        _ => Ok(json!({"name": name})),
    }
}

fn stored() -> Result<HashMap<String, i64>, HandlerError> {
    Ok(serde_json::from_str("{\"a\": 1}")?)
}

fn find(id: i64) -> Option<JsonValue> {
    (id > 0).then(|| json!({"id": id}))
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let token = req.require_header("Authorization")?;
    let id: i64 = req.require_path_param("id")?;
    let by_turbofish = req.require_path_param::<u8>("id")?;
    let page: usize = req.require_query_param("page")?;
    if req.is_json() && req.content_type().is_some() {
        let any: JsonValue = req.json()?;
        let list: Vec<String> = req.json().map_err(|e| HandlerError::ValidationError(e.to_string()))?;
        eprintln!("{any} {list:?}");
    }
    if token.is_empty() {
        return Err(HandlerError::Forbidden("not with an empty token".into()));
    }
    let item = item(token).map_err(HandlerError::from)?;
    let found = find(id).ok_or(HandlerError::NotFound)?;
    let number: u32 = req.path_param_as("n").ok_or_else(|| HandlerError::BadRequest("n".into()))?;
    match check(&req) {
        Ok(()) => {}
        Err(e) => {
            eprintln!("[{}] {} ({})", req.request_id, e, e.status_code());
            if matches!(e, HandlerError::Internal(_) | HandlerError::DatabaseError(_)) {
                return Ok(e.to_response());
            }
            return Err(e);
        }
    }
    Ok(Response::json(
        202,
        json!({"item": item, "found": found, "page": page, "n": number, "b": by_turbofish, "stored": stored()?}),
    ))
}

fn check(req: &Request) -> Result<(), HandlerError> {
    match req.header("x-fail").map(|kind| kind.as_str()) {
        None => Ok(()),
        Some("method") => Err(HandlerError::MethodNotAllowed(req.method.clone())),
        Some("large") => Err(HandlerError::PayloadTooLarge("too much".into())),
        Some("ipc") => Err(HandlerError::IpcError("gone".into())),
        Some("redis") => Err(HandlerError::RedisError("gone".into())),
        Some("storage") => Err(HandlerError::StorageError("gone".into())),
        Some("internal") => Err(HandlerError::InternalError("gone".into())),
        Some("away") => Err(HandlerError::ServiceUnavailable("gone".into())),
        Some(other) => Err(HandlerError::DatabaseError(other.to_owned())),
    }
}

handler_loop_result!(handle);
