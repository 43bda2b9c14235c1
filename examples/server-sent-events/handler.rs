// GET /countdown/{from}: counts down to zero, an event every second, or every so many milliseconds (`every`).
//
//     curl -N http://localhost:8080/countdown/3
//     id: 3
//     event: count
//     data: {"left":3}
//
// In a page of the same origin; a browser whose connection breaks comes back, and the countdown goes on:
//
//     const events = new EventSource('/countdown/10');
//     events.addEventListener('count', ({ data }) => console.log(JSON.parse(data).left));
//     events.addEventListener('done', () => events.close());

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::time::{sleep, Duration};

async fn handle(req: Request) -> Result<Sse, HandlerError> {
    let from: u32 = req.require_path_param("from")?;
    if from > 3600 {
        return Err(HandlerError::BadRequest("At most 3600.".into()));
    }
    let every = Duration::from_millis(req.query_param_as("every").unwrap_or(1000));
    // A client that comes back has seen all down to this one.
    let seen: Option<u32> = req.header("last-event-id").and_then(|id| id.parse().ok());
    let counts = 0..seen.unwrap_or(u32::MAX).min(from + 1);
    Ok(Sse::new_async(move |mut events| async move {
        // When the client leaves, this is dropped at one of its `.await`s.
        for left in counts.rev() {
            events
                .send(
                    Event::new()
                        .id(left.to_string())
                        .event("count")
                        .json(&json!({ "left": left }))?,
                )
                .await?;
            if left > 0 {
                sleep(every).await;
            }
        }
        events.send(Event::new().event("done").data("")).await
    }))
}

handler_loop_async_result!(handle);
