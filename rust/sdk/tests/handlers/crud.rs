//! One handler for several methods, errors by hand.

use rust_edge_gateway_sdk::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Book {
    isbn: String,
    title: String,
    pages: Option<u32>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct Changes {
    title: Option<String>,
    pages: Option<u32>,
}

fn handle(req: Request) -> Response {
    eprintln!("[{}] {} {} from {:?}", req.request_id, req.method, req.path, req.client_ip);
    match req.method.as_str() {
        "GET" if req.params.contains_key("isbn") => show(&req),
        "GET" => list(&req),
        "POST" => create(&req),
        "PUT" => change(req),
        "DELETE" => Response::no_content(),
        _ => Response::json(405, json!({"error": "no"})).with_header("Allow", "GET, POST, PUT, DELETE"),
    }
}

fn show(req: &Request) -> Response {
    let isbn = match req.path_param("isbn") {
        Some(isbn) => isbn.clone(),
        None => return Response::bad_request("isbn is missing"),
    };
    if isbn == "0" {
        return Response::not_found();
    }
    Response::ok(json!({"isbn": isbn, "found": true}))
}

fn list(req: &Request) -> Response {
    let page: u32 = req.query_param("page").and_then(|page| page.parse().ok()).unwrap_or(1);
    let limit: usize = req.query_param_as("limit").unwrap_or(20);
    let search = req.query_param("q").map(|q| q.to_string()).unwrap_or_default();
    for (name, value) in &req.query {
        eprintln!("{} = {}", name, value);
    }
    let books: Vec<JsonValue> = vec![json!({"isbn": "1"}), json!({"isbn": "2"})];
    Response::ok(json!({
        "page": page,
        "limit": limit.min(100),
        "search": search,
        "filters": {"author": req.query_param("author"), "all": req.query},
        "count": books.len(),
        "books": books,
    }))
    .with_cache(60)
}

fn create(req: &Request) -> Response {
    let book: Book = match req.json() {
        Ok(book) => book,
        Err(e) => return Response::bad_request(format!("Invalid JSON: {}", e)),
    };
    if book.title.is_empty() {
        return Response::bad_request("title must not be empty");
    }
    Response::created(book).with_header("Location", "/books/1").with_cors("*")
}

fn change(req: Request) -> Response {
    let changes = req.json::<Changes>();
    let body = req.body.unwrap_or_default();
    let mut book = json!({"title": "old", "raw": body});
    if let Ok(changes) = changes {
        if let Some(title) = changes.title {
            book["title"] = json!(title);
        }
        book["pages"] = json!(changes.pages);
    }
    Response::ok(book)
}

handler_loop!(handle);
