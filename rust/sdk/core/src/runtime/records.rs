//! What a handler says, for the endpoint's log: records of the `log` crate, panics, and errors that clients read the
//! kind of only. Each is a line of JSON on a stream of its own (`EDGE_LOG_FD`), so that nothing a handler prints can be
//! taken for one. Without that stream, as when a handler is run by hand, they are lines on stderr.

use super::current::{self, Trace};
use super::poll;
use super::threads::lock;
use log::kv::{self, Key, Value, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use serde_json::{json, Map};
use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

const SDK: &str = env!("CARGO_MANIFEST_DIR");
/// Longer messages are cut.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;
/// Key-values of one record beyond these are left out.
const MAX_FIELDS: usize = 32;
const MAX_FIELD_BYTES: usize = 1024;
/// Longer names of pools are cut: what is written for a trace must not be long (see `poll::is_writable`).
const MAX_POOL_BYTES: usize = 256;
/// Says how many key-values were left out.
const LEFT_OUT_FIELDS: &str = "left_out_fields";

/// Parts of traces that were not recorded, and of which that was not said yet.
static LOST_SPANS: AtomicU64 = AtomicU64::new(0);

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

/// The same, with the place that it comes from, if that is one of the handler or of its crates.
pub fn error_at(place: &Location<'_>, message: &str) {
    let is_of_sdk = place.file().starts_with(SDK) || place.file().contains("library/core/src/");
    error(message, fields_of(Some(place).filter(|_| !is_of_sdk)));
}

/// Records a panic.
pub fn panicked(place: Option<&Location<'_>>, message: &str) {
    write(Level::Error, "panic", message, fields_of(place));
}

/// The field that says where something has happened.
fn fields_of(place: Option<&Location<'_>>) -> Map<String, serde_json::Value> {
    place.map(|place| ("place".to_owned(), place_of(place).into())).into_iter().collect()
}

/// A place in the source.
fn place_of(place: &Location<'_>) -> String {
    format!("{}:{}:{}", short_path(place.file()), place.line(), place.column())
}

/// A source file without the folders of the machine that compiled it: of the SDK, `rust-edge-gateway-sdk/core/src/...`;
/// of a crate, `name-version/src/...`.
fn short_path(file: &str) -> String {
    let sdk = SDK.strip_suffix("/core").unwrap_or(SDK);
    if let Some(rest) = file.strip_prefix(sdk).filter(|rest| rest.starts_with('/')) {
        return format!("rust-edge-gateway-sdk{rest}");
    }
    // CARGO_HOME/registry/src/<index>/<name>-<version>/...
    let in_registry = file.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    in_registry.map_or(file, |(_, crate_path)| crate_path).to_owned()
}

/// A call of a service that has ended: never what was asked.
pub struct ServiceCall<'a> {
    pub pool: &'a str,
    pub operation: &'a str,
    pub duration: Duration,
    /// The kind of its error.
    pub failure: Option<&'static str>,
    /// Whether it is for the log, because it has failed or has taken long; otherwise for a trace only.
    pub is_noteworthy: bool,
}

/// Records a call of a service, as a part of the trace of its request.
#[inline(never)]
pub fn service_call(call: &ServiceCall<'_>, trace: Option<&Trace>) {
    let mut fields = Map::new();
    let mut insert = |name: &str, value: serde_json::Value| fields.insert(name.to_owned(), value);
    insert("pool", cut(call.pool, MAX_POOL_BYTES).into());
    insert("operation", call.operation.into());
    let microseconds = call.duration.as_micros() as u64;
    insert(
        "duration_ms",
        if call.is_noteworthy { json!(microseconds / 1000) } else { json!(microseconds as f64 / 1e3) },
    );
    if let Some(trace) = trace {
        insert("trace_id", (&*trace.trace_id).into());
        insert("parent_id", (&*trace.parent_id).into());
        insert("span_id", current::new_span_id().into());
        if trace.wants_spans {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            insert("ended_us", (now.as_micros() as u64).into());
            insert("lost_spans", LOST_SPANS.swap(0, Relaxed).into());
        }
    }
    let message = match call.failure {
        Some(kind) => {
            insert("error", kind.into());
            "a call of a service has failed"
        }
        None if call.is_noteworthy => "a call of a service has taken long",
        None => "a call of a service",
    };
    if call.is_noteworthy {
        write(Level::Warn, "service", message, fields);
    } else if STREAM.get().is_some_and(|stream| poll::is_writable(&*lock(stream))) {
        write(Level::Trace, "service", message, fields);
    } else {
        // No request waits for a trace.
        LOST_SPANS.fetch_add(1, Relaxed);
    }
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
        } else {
            let left_out = self.0.get(LEFT_OUT_FIELDS).and_then(serde_json::Value::as_u64).unwrap_or(0);
            self.0.insert(LEFT_OUT_FIELDS.to_owned(), (left_out + 1).into());
        }
        Ok(())
    }
}

fn json_of(value: &Value<'_>) -> serde_json::Value {
    if let Some(text) = value.to_borrowed_str() {
        return shown(text).into();
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
        _ => shown(&value.to_string()).into(),
    }
}

fn write(level: Level, target: &str, message: &str, mut fields: Map<String, serde_json::Value>) {
    let current = current::get();
    if let Some(current) = current.as_ref().filter(|_| level == Level::Error) {
        current.set_error();
    }
    let request_id = current.as_ref().and_then(|current| current.request_id());
    let Some(stream) = STREAM.get() else {
        eprintln!("{}", as_text(level, target, message, request_id, &fields));
        return;
    };
    let kept = cut(message, MAX_MESSAGE_BYTES);
    let cut_bytes = message.len() - kept.len();
    if cut_bytes > 0 {
        fields.insert("cut_bytes".to_owned(), cut_bytes.into());
    }
    let record = json!({
        "level": level.as_str().to_ascii_lowercase(),
        "target": target,
        "message": if cut_bytes > 0 { format!("{kept}...").into() } else { Cow::from(kept) },
        "request_id": request_id,
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
    request_id: Option<&str>,
    fields: &Map<String, serde_json::Value>,
) -> String {
    let mark = request_id.map_or_else(String::new, |id| format!("[request {id}] "));
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

/// A value; where it is cut, one sees it.
fn shown(text: &str) -> String {
    let kept = cut(text, MAX_FIELD_BYTES);
    match text.len() - kept.len() {
        0 => kept.to_owned(),
        missing => format!("{kept}... ({missing} bytes more)"),
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

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(shown("short"), "short");
        let long = "x".repeat(MAX_FIELD_BYTES + 7);
        assert_eq!(shown(&long), format!("{}... (7 bytes more)", "x".repeat(MAX_FIELD_BYTES)));
        let mut fields = Fields(Map::new());
        for number in 0..MAX_FIELDS + 3 {
            let key = format!("key {number}");
            fields.visit_pair(Key::from_str(&key), Value::from(number)).unwrap();
        }
        assert_eq!((fields.0.len(), &fields.0[LEFT_OUT_FIELDS]), (MAX_FIELDS + 1, &json!(3)));
    }

    #[test]
    fn places_name_no_folder_of_the_machine() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src/response.rs");
        assert_eq!(short_path(here), "rust-edge-gateway-sdk/core/src/response.rs");
        let of_a_crate = "/home/me/.cargo/registry/src/registry-1949cf8c6b5b557f/regex-1.11.1/src/lib.rs";
        assert_eq!(short_path(of_a_crate), "regex-1.11.1/src/lib.rs");
        for as_it_is in ["handler.rs", "/rustc/5980/library/core/src/option.rs", "core/src/response.rs"] {
            assert_eq!(short_path(as_it_is), as_it_is);
        }
    }
}
