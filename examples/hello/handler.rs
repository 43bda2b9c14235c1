// GET /hello/{name}: greets whoever the path names.
//
//     curl http://localhost:8080/hello/Ada
//     {"message":"Hello, Ada!"}

use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    // {name} of the endpoint's path, already decoded: /hello/J%C3%BCrgen gives "Jürgen".
    let Some(name) = req.path_param("name") else {
        return Response::bad_request("Who shall be greeted? Ask for /hello/{name}.");
    };
    Response::ok(json!({"message": format!("Hello, {name}!")}))
}

handler_loop!(handle);
