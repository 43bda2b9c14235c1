/** The handlers that are measured. */

/** A small JSON handler as people write them: typed input, a check, JSON out. `variant` makes its code unlike any other. */
export function jsonHandler(variant: string): string {
  return `use rust_edge_gateway_sdk::prelude::*;

#[derive(Deserialize)]
struct NewItem {
    name: String,
    price: u32,
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let item: NewItem = req.json()?;
    if item.price == 0 {
        return Err(HandlerError::ValidationError("price must be above 0".into()));
    }
    Ok(Response::created(json!({ "id": "${variant}", "name": item.name, "total": item.price * 2 })))
}

handler_loop_result!(handle);
`;
}

/** Answers a small JSON document. */
export const SMALL_JSON = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    Response::ok(json!({ "hello": req.path_param("name"), "from": "a handler" }))
}

handler_loop!(handle);
`;

/** What \`SMALL_JSON\` answers for the name \`ada\`. */
export const SMALL_JSON_BODY = '{"hello":"ada","from":"a handler"}';

/** Answers what it was sent. */
export const ECHO = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    Response::binary(200, req.body_bytes(), "application/octet-stream")
}

handler_loop!(handle);
`;

/** A name no other call returns. */
export function uniqueVariant(): string {
  return `${process.pid}-${performance.now().toString(36).replace('.', '')}-${Math.random().toString(36).slice(2)}`;
}
