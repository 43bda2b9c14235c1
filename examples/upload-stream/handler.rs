// PUT /large-files/{name} stores a file of any size, GET /large-files/{name} serves it. Neither the handler nor the
// gateway ever has more than a few megabytes of it in memory. Needs an object storage bound as "files".
//
//     curl -T film.mp4 http://localhost:8080/large-files/film.mp4
//     {"name":"film.mp4","size":1073741824}
//     curl -o copy.mp4 http://localhost:8080/large-files/film.mp4

use rust_edge_gateway_sdk::prelude::*;

const ANY_BYTES: &str = "application/octet-stream";

fn handle(req: StreamRequest) -> Result<StreamResponse, HandlerError> {
    let name: String = req.require_path_param("name")?;
    let key = format!("uploads/{name}");
    let files = ObjectStore::new("files");
    if req.is_method("PUT") {
        let content_type = req.content_type().map_or(ANY_BYTES, String::as_str);
        let stored = files.upload(&key, content_type, req.body_reader())?;
        let answer = json!({"name": name, "size": stored.size});
        return Ok(Response::created(answer).into());
    }
    let Some(mut object) = files.download(&key)? else {
        return Err(HandlerError::NotFoundMessage(format!("no file {name}")));
    };
    let length = object.info().size.to_string();
    let content_type = object.info().content_type.clone();
    Ok(
        StreamResponse::new(move |out| std::io::copy(&mut object, out).map(drop))
            .with_header("Content-Length", length)
            .with_header(
                "Content-Type",
                content_type.unwrap_or_else(|| ANY_BYTES.into()),
            ),
    )
}

handler_loop_result!(handle);
