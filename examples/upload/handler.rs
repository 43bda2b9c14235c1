// POST /upload: takes a form with a file and says what arrived. Files may hold any bytes.
//
//     curl -F title=Sunset -F photo=@sunset.jpg http://localhost:8080/upload
//     {"bytes":48211,"content_type":"image/jpeg","filename":"sunset.jpg","title":"Sunset"}

use rust_edge_gateway_sdk::prelude::*;

const MAX_BYTES: usize = 5 * 1024 * 1024;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let form = req.multipart()?;
    let title = form.require_field("title")?;
    let photo = form.require_file("photo")?;
    if photo.data.len() > MAX_BYTES {
        return Err(HandlerError::PayloadTooLarge(format!(
            "a photo has at most {MAX_BYTES} bytes"
        )));
    }
    Ok(Response::created(json!({
        "title": title,
        "filename": photo.filename,
        "content_type": photo.content_type,
        "bytes": photo.data.len(),
    })))
}

handler_loop_result!(handle);
