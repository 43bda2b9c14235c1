//! Uploads, files, redirects, and responses put together by hand.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::request::{MultipartData, MultipartFile};
use std::collections::HashMap;

fn handle(req: Request) -> Response {
    if req.is_method("OPTIONS") {
        return Response::no_content().with_cors("https://example.org").with_header("Access-Control-Max-Age", "86400");
    }
    let outcome: Result<Response, HandlerError> = upload(&req);
    match outcome {
        Ok(response) => response,
        Err(e) => e.into(),
    }
}

fn upload(req: &Request) -> Result<Response, HandlerError> {
    if !req.is_multipart() {
        return Ok(plain(req));
    }
    let form: MultipartData = req.multipart()?;
    let title = form.require_field("title")?;
    let note = form.field("note").cloned().unwrap_or_default();
    let file: &MultipartFile = form.require_file("document")?;
    if let Some(extra) = form.file("extra") {
        eprintln!("{} {} {}", extra.filename, extra.content_type, extra.data.len());
    }
    for (name, file) in &form.files {
        eprintln!("{name}: {file:?}");
    }
    Ok(Response::created(json!({"title": title, "note": note, "size": file.data.len(), "fields": form.fields})))
}

fn plain(req: &Request) -> Response {
    let bytes: Vec<u8> = req.body_bytes();
    match req.path.as_str() {
        "/image" => Response::binary(200, bytes, "image/png")
            .with_cache(86400)
            .with_header("Content-Disposition", format!("inline; filename=\"{}.png\"", "a")),
        "/slice" => Response::binary(200, &bytes[..], String::from("application/pdf")),
        "/page" => Response::html(200, "<h1>Hello</h1>"),
        "/text" => Response::text(200, format!("{} bytes", bytes.len())),
        "/xml" => Response::new(200).with_header("Content-Type", "application/xml").with_body("<a/>"),
        "/old" => Response::redirect(301, "/new"),
        "/literal" => {
            let mut headers = HashMap::new();
            headers.insert("X-A".to_string(), "1".to_string());
            Response { status: 200, headers, body: Some("by hand".to_string()) }
        }
        "/changed" => {
            let mut response = Response::default();
            response.status = 418;
            response.headers.insert("X-B".into(), "2".into());
            response.body = None;
            response
        }
        _ => Response::not_found_msg(format!("nothing at {}", req.path)),
    }
}

handler_loop!(handle);
