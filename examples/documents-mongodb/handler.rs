// POST /events: stores an event, and returns the latest of its kind. Needs a MongoDB service bound as "documents".
//
//     curl -d '{"kind": "login", "user": "ada"}' http://localhost:8080/events
//     {"latest":[{"kind":"login","user":"ada"}],"total":1}

use rust_edge_gateway_sdk::prelude::*;

#[derive(Deserialize, Serialize)]
struct Event {
    kind: String,
    // Whatever else is sent.
    #[serde(flatten)]
    details: JsonValue,
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let event: Event = req.json()?;
    let mongo = MongoPool::new("documents");
    mongo.insert_one("events", &event)?;
    let same_kind = json!({"kind": event.kind});
    // Ids grow with time.
    let latest = FindOptions::new()
        .descending("_id")
        .limit(10)
        .projection(json!({"_id": 0}));
    Ok(Response::created(json!({
        "total": mongo.count("events", &same_kind)?,
        "latest": mongo.find("events", &same_kind, latest)?,
    })))
}

handler_loop_result!(handle);
