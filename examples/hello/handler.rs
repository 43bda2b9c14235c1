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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greets_by_name() {
        let params = [("name".to_string(), "Ada".to_string())].into();
        let response = handle(Request {
            params,
            ..Request::default()
        });
        assert_eq!(
            response.body.as_deref(),
            Some(r#"{"message":"Hello, Ada!"}"#)
        );
    }
}
