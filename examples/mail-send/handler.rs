// POST /contact: mails what a visitor has written. Needs a mail service bound as "mail".
//
//     curl -d '{"email": "ada@example.com", "text": "Hello!"}' http://localhost:8080/contact
//     {"message_id":"<...>"}

use rust_edge_gateway_sdk::prelude::*;

const OFFICE: &str = "office@example.com";

#[derive(Deserialize)]
struct Contact {
    email: String,
    text: String,
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let contact: Contact = req.json()?;
    if contact.text.trim().is_empty() {
        return Err(HandlerError::ValidationError(
            "text must not be empty".into(),
        ));
    }
    // From our own address, or the mail may count as forged; replies go to the visitor.
    let message = EmailMessage::new("Somebody wrote to us")
        .to(OFFICE)
        .reply_to(contact.email)
        .text(contact.text);
    let sent = EmailPool::new("mail").send_message(&message)?;
    Ok(Response::accepted(json!({"message_id": sent.message_id})))
}

handler_loop_result!(handle);
