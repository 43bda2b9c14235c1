// POST /visits/{page}: counts a visit, and says how many there were. Needs a SQLite service bound as "db".
//
//     curl -X POST http://localhost:8080/visits/home
//     {"page":"home","visits":3}

use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let page: String = req.require_path_param("page")?;
    let db = DbPool::new("db");
    db.execute(
        "CREATE TABLE IF NOT EXISTS visits (page TEXT PRIMARY KEY, n INTEGER NOT NULL)",
        (),
    )?;
    // Both statements or none, and nobody else in between.
    let visits: Option<u64> = db.transaction(|tx| -> Result<_, HandlerError> {
        tx.execute(
            "INSERT INTO visits (page, n) VALUES (?, 1) ON CONFLICT (page) DO UPDATE SET n = n + 1",
            [&page],
        )?;
        tx.query("SELECT n FROM visits WHERE page = ?", [&page])?
            .value()
    })?;
    Ok(Response::ok(json!({"page": page, "visits": visits})))
}

handler_loop_result!(handle);
