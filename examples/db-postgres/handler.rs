// POST /books: adds a book, and lists all of its author. Needs a PostgreSQL service bound as "db".
//
//     curl -d '{"title": "Emma", "author": "Jane Austen", "year": 1815}' http://localhost:8080/books
//     [{"id":1,"title":"Emma","year":1815,"added":"2026-01-31T12:00:00.123456Z"}]

use rust_edge_gateway_sdk::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process knows that the table is there.
static IS_PREPARED: AtomicBool = AtomicBool::new(false);

#[derive(Deserialize)]
struct NewBook {
    title: String,
    author: String,
    year: Option<i32>,
}

#[derive(Deserialize, Serialize)]
struct Book {
    id: i64,
    title: String,
    year: Option<i32>,
    added: String,
}

fn prepare(db: &DbPool) -> Result<(), HandlerError> {
    if !IS_PREPARED.load(Ordering::Relaxed) {
        db.execute(
            "CREATE TABLE IF NOT EXISTS books (
                id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                title TEXT NOT NULL,
                author TEXT NOT NULL,
                year INTEGER,
                added TIMESTAMPTZ NOT NULL DEFAULT now()
            )",
            (),
        )?;
        IS_PREPARED.store(true, Ordering::Relaxed);
    }
    Ok(())
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let book: NewBook = req.json()?;
    let db = DbPool::new("db");
    prepare(&db)?;
    db.execute(
        "INSERT INTO books (title, author, year) VALUES (?, ?, ?)",
        (&book.title, &book.author, book.year),
    )?;
    let books: Vec<Book> = db.query_as(
        "SELECT id, title, year, added FROM books WHERE author = ? ORDER BY id",
        [&book.author],
    )?;
    Ok(Response::created(books))
}

handler_loop_result!(handle);
