//! Policies, as the supervisor compiles them. How they are stored, inherited and compiled is tested in
//! `test/processes/policies`, with one case of each policy from the API to the client.
mod auth;
mod compress;
mod cors;
mod headers;
mod ip;
mod jwt;
mod limits;
mod memory;
mod rate_limit;

use serde_json::{Value, json};

use crate::support::{Answer, Front, Handler, Request, get, post};

/// A front with GET and POST `/echo`, for which policies are set.
struct Fixture {
    front: Front,
    handler: Handler,
}

impl Fixture {
    fn start() -> Self {
        Self::with(json!({}))
    }

    fn with(settings: Value) -> Self {
        let front = Front::with(settings);
        let handler = front.handler(echo);
        let fixture = Self { front, handler };
        fixture.set(json!({}));
        fixture
    }

    /// Sets the policies of both endpoints, as those of a domain are.
    fn set(&self, policies: Value) {
        self.set_each(policies.clone(), policies);
    }

    fn set_each(&self, of_get: Value, of_post: Value) {
        let endpoints = [get("/echo").policies(of_get), post("/echo").policies(of_post)];
        self.front.serve(&self.handler, endpoints);
    }

    /// What the handler gets of a GET with these header lines.
    fn echoed(&self, lines: &str) -> Value {
        let response = self.front.get("/echo", lines);
        assert_eq!(response.status, 200, "{lines}: {}", response.text());
        response.json()
    }

    fn status(&self, lines: &str) -> u16 {
        self.front.get("/echo", lines).status
    }
}

/// Answers with what has reached the handler. `X-Length` makes the answer longer, `X-Answer: Name: value` gives it a
/// header.
fn echo(request: &Request) -> Answer {
    let headers = request.headers();
    let length = headers.get("x-length").map_or(0, |length| length.parse().unwrap());
    let auth = &request.head["auth"];
    let mut answer = Answer::json(&json!({
        "method": request.method(),
        "auth": auth,
        "headers": headers,
        "bytes": request.body.len(),
        "filler": "all work and no play ".repeat(length / 21),
    }));
    if let Some((name, value)) = headers.get("x-answer").and_then(|line| line.split_once(": ")) {
        answer = answer.header(name, value);
    }
    answer
}
