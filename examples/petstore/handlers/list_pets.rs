// GET /pets: all pets, by their ids.

use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Result<Response, HandlerError> {
    let pets = Storage::database("db", "pets");
    Ok(Response::ok(pets.all()?))
}

handler_loop_result!(handle);
