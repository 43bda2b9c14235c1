//! Code that most handlers need, compiled here once instead of in each of them.
//!
//! Generic functions are compiled where they are used, unless an upstream crate has the very same instance and both
//! crates are built at an optimisation level at which rustc shares generics (1, `s` and `z`). This crate is built at
//! such a level, see Cargo.toml, and so is a handler, see INTERNALS.md. Here are the instances worth having: reading
//! and writing the usual types as JSON, and dropping what the SDK hands out.

use crate::__private::{from_bytes, run, run_result, to_value};
use crate::services::{DbPool, EmailMessage, EmailPool, FindOptions, MongoPool, RedisPool, Storage};
use crate::{json, HandlerError, Request, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::hint::black_box;

/// Never called. Public, or the compiler would see that and drop the instances.
#[doc(hidden)]
pub fn instances(request: Request, error: HandlerError, result: Result<Response, HandlerError>) {
    drop((request, error, result));
    black_box(run::<Request, Response> as fn(_) -> _);
    black_box(run_result::<Request, Result<Response, HandlerError>> as fn(_) -> _);
    both::<Fields>();
    both::<Value>();
    both::<Map<String, Value>>();
    both::<String>();
    both::<bool>();
    both::<i32>();
    both::<i64>();
    both::<u8>();
    both::<u16>();
    both::<u32>();
    both::<u64>();
    both::<usize>();
    both::<f32>();
    both::<f64>();
    both::<HashMap<String, String>>();
    both::<HashMap<String, Value>>();
    write::<&str>("");
    write::<&String>(&String::new());
    write::<Option<&String>>(None);
    write::<Option<&str>>(None);
}

/// The same for handlers that call services. Never called either.
#[doc(hidden)]
#[allow(clippy::needless_borrows_for_generic_args)] // Handlers for SDK 0.1 write `&[""]`.
pub fn services(db: DbPool, redis: RedisPool, mongo: MongoPool, storage: Storage, mail: EmailPool) {
    let text = String::new();
    drop((
        db.query("", ()),
        db.query("", [""]),
        db.query("", [&text]),
        db.query("", (0_i64,)),
        db.query("", Value::Null),
    ));
    drop((db.execute("", ()), db.execute("", [""]), db.execute("", [&text]), db.begin()));
    drop((db.query("", &[""]), db.execute("", &[""])));
    if let Ok(result) = db.query("", ()) {
        drop((result.value::<i64>(), result.value::<u64>(), result.value::<String>(), result.value::<bool>()));
    }
    drop((redis.get(""), redis.get_bytes(""), redis.set("", ""), redis.set("", text), redis.command([""])));
    let (all, given) = (|| json!({}), &json!({}));
    drop((mongo.find("", all(), FindOptions::new()), mongo.find_one("", all()), mongo.find_one("", given)));
    drop((mongo.insert_one("", all()), mongo.insert_one("", given), mongo.count("", all())));
    drop((storage.get(""), storage.list(None), storage.add(given), storage.replace("", given)));
    drop((mail.send("", "", ""), mail.send_message(&EmailMessage::new(""))));
    drop((db, redis, mongo, storage, mail));
}

/// `T`, an optional `T` and a list of `T`, read and written.
fn both<T: DeserializeOwned + Serialize>() {
    read_write::<T>();
    read_write::<Option<T>>();
    read_write::<Vec<T>>();
    read_write::<Option<Vec<T>>>();
}

fn read_write<T: DeserializeOwned + Serialize>() {
    if let Ok(value) = from_bytes::<T>(b"") {
        drop(to_value(&value));
        write(value);
    }
}

fn write<T: Serialize>(value: T) {
    drop(to_value(&value));
    drop(Response::ok(value));
}

/// Its derives instantiate what reads and writes a field of each of the usual types.
#[derive(Deserialize, Serialize)]
struct Fields {
    text: String,
    texts: Vec<String>,
    maybe_text: Option<String>,
    flag: bool,
    maybe_flag: Option<bool>,
    signed: i32,
    long: i64,
    maybe_long: Option<i64>,
    unsigned: u32,
    maybe_unsigned: Option<u32>,
    unsigned_long: u64,
    maybe_unsigned_long: Option<u64>,
    size: usize,
    float: f64,
    maybe_float: Option<f64>,
    json: Value,
    maybe_json: Option<Value>,
}
