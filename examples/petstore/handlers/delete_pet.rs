// DELETE /pets/{id}

use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let pets = Storage::database("db", "pets");
    let id: String = req.require_path_param("id")?;
    if !pets.delete(&id)? {
        return Err(HandlerError::NotFoundMessage(format!("no pet {id}")));
    }
    Ok(Response::no_content())
}

handler_loop_result!(handle);
