//! What a handler says, for the endpoint's log: records of the `log` crate, panics, and errors that clients read the
//! kind of only. Each is a line of JSON on a stream of its own (`EDGE_LOG_FD`), so that nothing a handler prints can be
//! taken for one. Without that stream, as when a handler is run by hand, they are lines on stderr.

use super::{lock, panics};
use log::kv::{self, Key, Value, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use serde_json::{json, Map};
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

/// Longer messages are cut.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;
/// Key-values of one record beyond these are left out.
const MAX_FIELDS: usize = 32;
const MAX_FIELD_BYTES: usize = 1024;

static STREAM: OnceLock<Mutex<File>> = OnceLock::new();

/// Makes this the logger of the `log` crate.
///
/// `RUST_LOG` is the lowest level that is recorded: `error`, `warn`, `info` (the default), `debug`, `trace`, or `off`.
pub fn install(stream: Option<File>) {
    if let Some(stream) = stream {
        // Installed once.
        let _ = STREAM.set(Mutex::new(stream));
    }
    let level = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok()).unwrap_or(LevelFilter::Info);
    if log::set_logger(&HandlerLog).is_ok() {
        log::set_max_level(level);
    }
}

/// Records an error of the request that this thread works on.
#[inline(never)]
pub fn error(message: &str, fields: Map<String, serde_json::Value>) {
    write(Level::Error, "sdk", message, fields);
}

/// Records a panic.
pub fn panicked(place: Option<String>, message: &str) {
    let mut fields = Map::new();
    if let Some(place) = place {
        fields.insert("place".to_owned(), place.into());
    }
    write(Level::Error, "panic", message, fields);
}

/// Records a call of a service that has failed, or has taken long: never what was asked.
#[inline(never)]
pub fn service_call(pool: &str, operation: &str, milliseconds: u64, failure: Option<&'static str>) {
    let mut fields = Map::new();
    fields.insert("pool".to_owned(), pool.into());
    fields.insert("operation".to_owned(), operation.into());
    fields.insert("duration_ms".to_owned(), milliseconds.into());
    let message = match failure {
        Some(kind) => {
            fields.insert("error".to_owned(), kind.into());
            "a call of a service has failed"
        }
        None => "a call of a service has taken long",
    };
    write(Level::Warn, "service", message, fields);
}

struct HandlerLog;

impl Log for HandlerLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let mut fields = Fields(Map::new());
        // It fails for no value.
        let _ = record.key_values().visit(&mut fields);
        let text = record.args().as_str().map_or_else(|| record.args().to_string(), str::to_owned);
        write(record.level(), record.target(), &text, fields.0);
    }

    fn flush(&self) {}
}

/// The key-values of a record.
struct Fields(Map<String, serde_json::Value>);

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        if self.0.len() < MAX_FIELDS {
            self.0.insert(cut(key.as_str(), MAX_FIELD_BYTES).to_owned(), json_of(&value));
        }
        Ok(())
    }
}

fn json_of(value: &Value<'_>) -> serde_json::Value {
    if let Some(text) = value.to_borrowed_str() {
        return cut(text, MAX_FIELD_BYTES).into();
    }
    if let Some(flag) = value.to_bool() {
        return flag.into();
    }
    if let Some(number) = value.to_i64() {
        return number.into();
    }
    if let Some(number) = value.to_u64() {
        return number.into();
    }
    match value.to_f64() {
        // Text for what JSON does not have.
        Some(number) if number.is_finite() => number.into(),
        _ => cut(&value.to_string(), MAX_FIELD_BYTES).into(),
    }
}

fn write(level: Level, target: &str, message: &str, fields: Map<String, serde_json::Value>) {
    let request_id = panics::request_id();
    let Some(stream) = STREAM.get() else {
        eprintln!("{}", as_text(level, target, message, &request_id, &fields));
        return;
    };
    let record = json!({
        "level": level.as_str().to_ascii_lowercase(),
        "target": target,
        "message": cut(message, MAX_MESSAGE_BYTES),
        "request_id": if request_id.is_empty() { None } else { Some(request_id) },
        "fields": fields,
    });
    let mut line = record.to_string();
    line.push('\n');
    // A gateway that has gone ends this process.
    let _ = lock(stream).write_all(line.as_bytes());
}

/// A record as a line, as the gateway writes it too (`src/gateway/handler-records.ts`).
fn as_text(
    level: Level,
    target: &str,
    message: &str,
    request_id: &str,
    fields: &Map<String, serde_json::Value>,
) -> String {
    let mark = if request_id.is_empty() { String::new() } else { format!("[request {request_id}] ") };
    let place = fields.get("place").and_then(serde_json::Value::as_str);
    match target {
        "panic" => format!("{mark}panicked{}: {message}", place.map_or_else(String::new, |at| format!(" at {at}"))),
        "sdk" => format!("{mark}{message}"),
        _ => {
            let fields: String = fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
            format!("{mark}{level} {target}: {message}{fields}")
        }
    }
}

/// The beginning of a text, up to so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!((cut("aä", 2), cut("aä", 3), cut("", 5)), ("a", "aä", ""));
    }

    #[test]
    fn values_keep_their_types() {
        let values =
            [Value::from(1_u64), Value::from(-2_i64), Value::from(true), Value::from("text"), Value::from(1.5)];
        let json: Vec<_> = values.iter().map(json_of).collect();
        assert_eq!(json, [json!(1), json!(-2), json!(true), json!("text"), json!(1.5)]);
        assert_eq!(json_of(&Value::from(f64::NAN)), json!("NaN"));
    }
}
