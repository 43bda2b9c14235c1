// POST /echo: answers with the text it was sent, repeated. Shows typed input, validation and errors.
//
//     curl -d '{"text": "ho", "times": 3}' http://localhost:8080/echo
//     {"text":"ho ho ho","length":8}

use rust_edge_gateway_sdk::prelude::*;

#[derive(Deserialize)]
struct Input {
    text: String,
    #[serde(default = "once")]
    times: usize,
}

#[derive(Serialize)]
struct Output {
    text: String,
    length: usize,
}

fn once() -> usize {
    1
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    // A body that is not JSON, or not this JSON, is a 400 that says where.
    let input: Input = req.json()?;
    if !(1..=100).contains(&input.times) {
        return Err(HandlerError::ValidationError(
            "times must be between 1 and 100".into(),
        ));
    }
    let text = vec![input.text; input.times].join(" ");
    let length = text.chars().count();
    Ok(Response::ok(Output { text, length }))
}

handler_loop_result!(handle);
