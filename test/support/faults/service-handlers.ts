/** Handlers that return the result of a service call, or its error message. */

/** Sets a key of the Redis that is bound as `cache`, and reads it. */
export const REDIS_READER = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response {
    let cache = RedisPool { pool_id: "cache".to_string() };
    match cache.set("key", "value").and_then(|_| cache.get("key")) {
        Ok(value) => Response::text(200, value.unwrap_or_default()),
        Err(error) => Response::text(error.status_code(), error.to_string()),
    }
}
handler_loop!(handle);
`;

/** Asks the SQL database that is bound as `db` for a constant. */
export const SQL_READER = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response {
    let db = DbPool { pool_id: "db".to_string() };
    match db.query("SELECT 'value' AS value", ()) {
        Ok(result) => Response::text(200, result.rows[0]["value"].as_str().unwrap_or_default()),
        Err(error) => Response::text(error.status_code(), error.to_string()),
    }
}
handler_loop!(handle);
`;
