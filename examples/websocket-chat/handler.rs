// GET /chat/{room}/socket: a chat over WebSockets. Each room is a stream in Redis, so that people talk to each other
// whichever gateway they are connected to, and who comes later reads the latest messages. Needs a Redis service bound
// as "rooms". Its page is the example websocket-chat-page.
//
//     npx wscat -c 'ws://localhost:8080/chat/lobby/socket?name=Ada'
//     > hello
//     < {"name":"Ada","text":"hello"}

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::sync::broadcast::{self, error::RecvError, Receiver, Sender};
use rust_edge_gateway_sdk::tokio::{self, time};
use std::collections::HashMap;
use std::sync::Mutex;

const MAX_NAME: usize = 40;
const MAX_TEXT: usize = 2000;
/// Messages that a room keeps, and those that who comes in reads.
const KEPT: &str = "1000";
const LATEST: &str = "50";
/// Messages that are read at a time, and how often it is looked for more.
const AT_ONCE: &str = "100";
const EVERY: time::Duration = time::Duration::from_millis(100);

/// The rooms in which people are. One task for each looks for new messages, however many are in it.
static ROOMS: Mutex<Option<HashMap<String, Sender<Entry>>>> = Mutex::new(None);

/// An entry of the stream of a room.
#[derive(Clone)]
struct Entry {
    id: String,
    message: String,
}

impl Entry {
    /// Its place in the stream, which its id tells: milliseconds, and a number among those of the same.
    fn place(&self) -> (u64, u64) {
        let (ms, number) = self.id.split_once('-').unwrap_or((&self.id, "0"));
        (ms.parse().unwrap_or(0), number.parse().unwrap_or(0))
    }
}

async fn chat(socket: AsyncWebSocket) -> Result<(), HandlerError> {
    let request = socket.request();
    let room = format!("chat:{}", request.require_path_param::<String>("room")?);
    let name = request.require_query_param::<String>("name")?;
    let name = name.trim().to_owned();
    if name.is_empty() || name.chars().count() > MAX_NAME {
        return socket.refuse(Response::text(400, "name must have 1 to 40 characters"));
    }
    // A room that cannot be read has no sockets: an error here is the answer.
    let last = latest(&room, "1").await?;
    let mut news = enter(&room, last.last().map_or("0", |entry| &entry.id));
    let (sender, mut receiver) = socket.split()?;
    // Read after the news were subscribed to: nothing is missed, and what comes twice is told once.
    let mut told = (0, 0);
    for entry in latest(&room, LATEST).await? {
        told = entry.place();
        sender.send(entry.message).await?;
    }
    loop {
        tokio::select! {
            message = receiver.recv() => match message {
                Some(Message::Text(text)) if text.chars().count() <= MAX_TEXT => say(&room, &name, text).await?,
                Some(Message::Text(_)) => sender.send(r#"{"error":"at most 2000 characters"}"#).await?,
                Some(_) => {}
                None => return Ok(()),
            },
            message = news.recv() => match message {
                Ok(entry) if entry.place() > told => sender.send(entry.message).await?,
                Ok(_) => {}
                // Who cannot keep up comes back, and reads the latest ones.
                Err(RecvError::Lagged(_)) => return Ok(sender.send(closing("too slow")).await?),
                Err(RecvError::Closed) => return Ok(sender.send(closing("the room cannot be read")).await?),
            },
        }
    }
}

/// 1013: try again later.
fn closing(reason: &str) -> Message {
    Message::Close(Some(CloseFrame::new(1013, reason)))
}

/// What is said in a room from now on. `after`: the last message that is known.
fn enter(room: &str, after: &str) -> Receiver<Entry> {
    let mut rooms = ROOMS
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let rooms = rooms.get_or_insert_with(HashMap::new);
    if let Some(sender) = rooms.get(room) {
        return sender.subscribe();
    }
    let (sender, receiver) = broadcast::channel(256);
    rooms.insert(room.to_owned(), sender.clone());
    tokio::spawn(follow(room.to_owned(), after.to_owned(), sender));
    receiver
}

/// Tells everybody in a room what is said there, until nobody is left.
async fn follow(room: String, mut last: String, sender: Sender<Entry>) {
    while has_people(&room, &sender) {
        time::sleep(EVERY).await;
        let after = format!("({last}");
        match entries(&["XRANGE", &room, &after, "+", "COUNT", AT_ONCE]).await {
            Ok(entries) => {
                for entry in entries {
                    last = entry.id.clone();
                    // Fails when everybody has left.
                    let _ = sender.send(entry);
                }
            }
            Err(error) => {
                error!("the room {room} cannot be read: {error}");
                close(&room);
                return;
            }
        }
    }
}

/// Whether somebody is in a room; it is closed when not.
fn has_people(room: &str, sender: &Sender<Entry>) -> bool {
    let mut rooms = ROOMS
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    // With the lock: nobody comes in meanwhile.
    if sender.receiver_count() == 0 {
        rooms.get_or_insert_with(HashMap::new).remove(room);
        return false;
    }
    true
}

/// With its last sender, everybody in it is told.
fn close(room: &str) {
    let mut rooms = ROOMS
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    rooms.get_or_insert_with(HashMap::new).remove(room);
}

async fn latest(room: &str, count: &str) -> Result<Vec<Entry>, HandlerError> {
    let mut entries = entries(&["XREVRANGE", room, "+", "-", "COUNT", count]).await?;
    entries.reverse();
    Ok(entries)
}

async fn say(room: &str, name: &str, text: String) -> Result<(), HandlerError> {
    let message = json!({ "name": name, "text": text }).to_string();
    let command = ["XADD", room, "MAXLEN", "~", KEPT, "*", "message", &message];
    ask(&command).await.map(|_| ())
}

/// The entries that a command of a stream replies: of each, its id, and its fields and values in turn.
async fn entries(command: &[&str]) -> Result<Vec<Entry>, HandlerError> {
    let reply = ask(command).await?;
    let entry = |entry: &JsonValue| {
        let (id, message) = (entry.get(0)?.as_str()?, entry.get(1)?.get(1)?.as_str()?);
        Some(Entry {
            id: id.to_owned(),
            message: message.to_owned(),
        })
    };
    Ok(reply
        .as_array()
        .map(|entries| entries.iter().filter_map(entry).collect())
        .unwrap_or_default())
}

/// Calls of services wait on a thread of their own, so that they hold up no other socket.
async fn ask(command: &[&str]) -> Result<JsonValue, HandlerError> {
    let command: Vec<String> = command.iter().map(|part| part.to_string()).collect();
    let asked = spawn_blocking(move || RedisPool::new("rooms").command(command)).await;
    asked.map_err(|error| HandlerError::Internal(error.to_string()))?
}

handler_ws_async!(chat);
