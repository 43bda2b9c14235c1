// PUT /files/{name} stores a file, GET /files/{name} serves it. Needs an object storage bound as "files".
//
//     curl -T photo.jpg -H 'Content-Type: image/jpeg' http://localhost:8080/files/photo.jpg
//     {"name":"photo.jpg","size":48211}

use rust_edge_gateway_sdk::prelude::*;

const ANY_BYTES: &str = "application/octet-stream";

fn handle(req: Request) -> Result<Response, HandlerError> {
    let name: String = req.require_path_param("name")?;
    let key = format!("uploads/{name}");
    let files = ObjectStore::new("files");
    if req.is_method("PUT") {
        let content_type = req.content_type().map_or(ANY_BYTES, String::as_str);
        let stored = files.put_with_type(&key, req.body_bytes(), content_type)?;
        return Ok(Response::created(
            json!({"name": name, "size": stored.size}),
        ));
    }
    let Some(info) = files.head(&key)? else {
        return Err(HandlerError::NotFoundMessage(format!("no file {name}")));
    };
    let content = files.get(&key)?.unwrap_or_default();
    let content_type = info.content_type.unwrap_or_else(|| ANY_BYTES.into());
    Ok(Response::binary(200, content, content_type))
}

handler_loop_result!(handle);
