/**
 * The handlers of the soak: one source in many variants, which responds as requested, optionally after calls of
 * services.
 */

/** `GET .../{n}`: answers `<variant> <n>`. The query `use` has n fetched from a service first; `use=panic` panics. */
export function soakHandler(variant: string): string {
  return `use rust_edge_gateway_sdk::prelude::*;

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

fn handle(req: Request) -> Result<Response, HandlerError> {
    let n: i64 = req.require_path_param("n")?;
    let n = match req.query_param("use").map(String::as_str) {
        Some("cache") => cached(n)?,
        Some("panic") => panic!("on purpose"),
        Some(pool) => stored(pool, n)?,
        None => n,
    };
    Ok(Response::text(200, format!("${variant} {n}")))
}

handler_loop_result!(handle);
`;
}
