/**
 * The handlers of the soak: one source in many variants, which responds as requested, optionally after calls of
 * services.
 */

/** The number of lines of a short stream. */
export const SHORT_STREAM = 20;

/**
 * `GET .../{n}`: answers `<variant> <n>`. The query `use` has n fetched from a service first; `use=panic` panics.
 * `use=stream` streams some of these lines, each with its number behind it, and `use=endless` goes on with it.
 */
export function soakHandler(variant: string): string {
  return `use rust_edge_gateway_sdk::prelude::*;
use std::{io::Write, thread::sleep, time::Duration};

const MISSING: fn() -> HandlerError = || HandlerError::NotFound;

fn stored(pool: &str, n: i64) -> Result<i64, HandlerError> {
    let db = DbPool::new(pool);
    db.execute("UPDATE items SET hits = hits + 1 WHERE id = ?", (n,))?;
    db.query("SELECT value FROM items WHERE id = ?", (n,))?.value()?.ok_or_else(MISSING)
}

fn cached(n: i64) -> Result<i64, HandlerError> {
    let cache = RedisPool::new("cache");
    let key = format!("soak:{n}");
    cache.setex(&key, n.to_string(), 60)?;
    let text = cache.get(&key)?.ok_or_else(MISSING)?;
    text.parse().map_err(|_| HandlerError::InternalError(text))
}

fn streamed(n: i64, lines: usize) -> StreamResponse {
    StreamResponse::new(move |out| {
        for line in 0..lines {
            writeln!(out, "${variant} {n} {line}")?;
            out.flush()?;
            sleep(Duration::from_millis(10));
        }
        Ok(())
    })
}

fn handle(req: Request) -> Result<StreamResponse, HandlerError> {
    let n: i64 = req.require_path_param("n")?;
    let n = match req.query_param("use").map(String::as_str) {
        Some("stream") => return Ok(streamed(n, ${SHORT_STREAM})),
        Some("endless") => return Ok(streamed(n, usize::MAX)),
        Some("cache") => cached(n)?,
        Some("panic") => panic!("on purpose"),
        Some(pool) => stored(pool, n)?,
        None => n,
    };
    Ok(Response::text(200, format!("${variant} {n}")).into())
}

handler_loop_result!(handle);
`;
}

/** A WebSocket that sends each message back, behind the variant. */
export function socketHandler(variant: string): string {
  return `use rust_edge_gateway_sdk::prelude::*;

async fn handle(socket: AsyncWebSocket) -> Result<(), HandlerError> {
    let (sender, mut receiver) = socket.split()?;
    while let Some(message) = receiver.recv().await {
        if let Message::Text(text) = message {
            sender.send(format!("${variant} {text}")).await?;
        }
    }
    Ok(())
}

handler_ws_async!(handle);
`;
}
