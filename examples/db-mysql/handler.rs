// POST /orders: stores an order and its items, all or nothing. Needs a MySQL service bound as "db".
//
//     curl -d '{"customer": "Ada", "items": [{"name": "tea", "pieces": 2}]}' http://localhost:8080/orders
//     {"id":1,"items":1}

use rust_edge_gateway_sdk::prelude::*;

#[derive(Deserialize)]
struct Order {
    customer: String,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    name: String,
    pieces: u32,
}

const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS orders (
        id BIGINT AUTO_INCREMENT PRIMARY KEY,
        customer VARCHAR(200) NOT NULL
    )",
    "CREATE TABLE IF NOT EXISTS order_items (
        order_id BIGINT NOT NULL,
        name VARCHAR(200) NOT NULL,
        pieces INT UNSIGNED NOT NULL,
        FOREIGN KEY (order_id) REFERENCES orders (id)
    )",
];

fn handle(req: Request) -> Result<Response, HandlerError> {
    let order: Order = req.json()?;
    if order.items.is_empty() {
        return Err(HandlerError::ValidationError(
            "items must not be empty".into(),
        ));
    }
    let db = DbPool::new("db");
    for table in TABLES {
        db.execute(table, ())?;
    }
    let id = db.transaction(|tx| -> Result<_, HandlerError> {
        let inserted = tx.execute_returning(
            "INSERT INTO orders (customer) VALUES (?)",
            [&order.customer],
        )?;
        let id = inserted.last_insert_id;
        for item in &order.items {
            tx.execute(
                "INSERT INTO order_items (order_id, name, pieces) VALUES (?, ?, ?)",
                (id, &item.name, item.pieces),
            )?;
        }
        Ok(id)
    })?;
    Ok(Response::created(
        json!({"id": id, "items": order.items.len()}),
    ))
}

handler_loop_result!(handle);
