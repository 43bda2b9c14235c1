/** The measured handlers. */

/** A small, typical JSON handler: typed input, a check, JSON output. `variant` makes its code unique. */
export function jsonHandler(variant: string): string {
  return `use rust_edge_gateway_sdk::prelude::*;

#[derive(Deserialize)]
struct NewItem {
    name: String,
    price: u32,
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let item: NewItem = req.json()?;
    if item.price == 0 {
        return Err(HandlerError::ValidationError("price must be above 0".into()));
    }
    Ok(Response::created(json!({ "id": "${variant}", "name": item.name, "total": item.price * 2 })))
}

handler_loop_result!(handle);
`;
}

/** Answers a small JSON document. */
export const SMALL_JSON = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    Response::ok(json!({ "hello": req.path_param("name"), "from": "a handler" }))
}

handler_loop!(handle);
`;

/** The response of `SMALL_JSON` for the name `ada`. */
export const SMALL_JSON_BODY = '{"hello":"ada","from":"a handler"}';

/** Answers with the request body. */
export const ECHO = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    Response::binary(200, req.body_bytes(), "application/octet-stream")
}

handler_loop!(handle);
`;

/** A unique name. */
export function uniqueVariant(): string {
  return `${process.pid}-${performance.now().toString(36).replace('.', '')}-${Math.random().toString(36).slice(2)}`;
}

/** Answers the value of a key of the Redis service `cache`. */
export const REDIS_GET = `use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Result<Response, HandlerError> {
    let greeting = RedisPool::new("cache").get("greeting")?;
    Ok(Response::ok(json!({ "hello": greeting, "from": "a handler" })))
}

handler_loop_result!(handle);
`;

/** Answers one row by its key from the database service `db`. */
export const ROW_BY_KEY = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let id: i64 = req.require_path_param("id")?;
    let found = DbPool::new("db").query("SELECT id, name, price FROM items WHERE id = ?", (id,))?;
    let row = found.rows.into_iter().next().ok_or(HandlerError::NotFound)?;
    Ok(Response::ok(row))
}

handler_loop_result!(handle);
`;

/** Streams `count` times of now, each a piece: microseconds since 1970 between line breaks. */
export const STREAMED_TIMES = `
use rust_edge_gateway_sdk::prelude::*;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn handle(req: Request) -> StreamResponse {
    let count = req.query_param_as("count").unwrap_or(0);
    StreamResponse::new(move |out| {
        for _ in 0..count {
            std::thread::sleep(Duration::from_millis(10));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            write!(out, "\\n{}\\n", now.as_micros())?;
            out.flush()?;
        }
        Ok(())
    })
}

handler_loop!(handle);
`;

/** Streams so many `bytes`. */
export const STREAMED_DOWNLOAD = `
use rust_edge_gateway_sdk::prelude::*;
use std::io::Write;

fn handle(req: Request) -> StreamResponse {
    let mut left: usize = req.query_param_as("bytes").unwrap_or(0);
    StreamResponse::new(move |out| {
        let piece = [b'x'; 32 * 1024];
        while left > 0 {
            let length = left.min(piece.len());
            out.write_all(&piece[..length])?;
            left -= length;
        }
        Ok(())
    })
}

handler_loop!(handle);
`;
