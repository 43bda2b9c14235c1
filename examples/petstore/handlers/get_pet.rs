// GET /pets/{id}

use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let pets = Storage::database("db", "pets");
    let id: String = req.require_path_param("id")?;
    let found = pets.get(&id)?;
    found
        .map(Response::ok)
        .ok_or_else(|| HandlerError::NotFoundMessage(format!("no pet {id}")))
}

handler_loop_result!(handle);
