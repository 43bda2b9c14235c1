//! What SDK 0.1 takes as parameters, and gives as results: all that fits `&[&str]` and its own types.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::services::{EnvVars, ServiceConfig};
use rust_edge_gateway_sdk::storage::StorageType;
use std::borrow::Cow;
use std::collections::HashMap;

fn database(db: &DbPool, name: String, id: &str) -> Result<Vec<String>, HandlerError> {
    let age = 7;
    db.execute("CREATE TABLE pets (id TEXT, name TEXT)", &[])?;
    db.execute("UPDATE", &[&name])?;
    db.execute("UPDATE", &[&name, id, "cat"])?;
    db.execute("UPDATE", &["cat", &name, &age.to_string()])?;
    db.execute("UPDATE", &[name.as_str(), &*name, &name[..1]])?;
    let cow: Cow<'_, str> = Cow::Borrowed("a");
    db.execute("UPDATE", &[cow.as_ref(), &cow])?;
    let texts = vec![name.clone(), id.to_owned()];
    let params: Vec<&str> = texts.iter().map(String::as_str).collect();
    db.execute("UPDATE", &params)?;
    let changed: u64 = db.execute("UPDATE", params.as_slice())?;
    if changed == 0 {
        return Err(HandlerError::NotFound);
    }
    let DbResult { rows, rows_affected, .. } = db.query("SELECT", &[id])?;
    let _: u64 = rows_affected;
    let mut names = Vec::new();
    for row in &rows {
        let row: &HashMap<String, JsonValue> = row;
        names.push(row.get("name").and_then(|value| value.as_str()).unwrap_or("").to_string());
    }
    let owned: Vec<HashMap<String, JsonValue>> = rows;
    names.extend(owned.into_iter().flat_map(|row| row.into_keys()));
    Ok(names)
}

fn cache(redis: RedisPool, value: &JsonValue) -> Result<Option<String>, HandlerError> {
    let text = value.to_string();
    redis.set("key", &text)?;
    redis.setex("key", &text, 60)?;
    redis.setex(&format!("key:{text}"), "value", 60 * 60)?;
    let seconds: u64 = 5;
    redis.setex("key", text.as_str(), seconds)?;
    redis.get("key")
}

fn records(kind: &str, id: String, pet: JsonValue) -> Result<JsonValue, HandlerError> {
    let storage = match kind {
        "objects" => Storage::object_storage("files", "pets"),
        "files" => Storage::file_storage("files", &format!("pets/{kind}")),
        _ => Storage::database("db", "pets"),
    };
    if let StorageType::Database = storage.storage_type {
        storage.create(&id, &pet)?;
    }
    storage.update(&id, &json!({"name": "Tom"}))?;
    let available: Vec<JsonValue> = storage.list(Some("available"))?;
    let deleted: bool = storage.delete(&id)?;
    let found: Option<JsonValue> = storage.get(&id)?;
    Ok(json!({"list": available, "all": storage.list(None)?, "found": found, "deleted": deleted}))
}

fn described(vars: HashMap<String, String>) -> ServiceConfig {
    let vars = EnvVars { vars };
    let connection = vars.get("DATABASE_URL").cloned().unwrap_or_default();
    ServiceConfig { service_type: "sqlite".to_string(), connection, options: HashMap::new() }
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let id: String = req.require_path_param("id")?;
    let names = database(&DbPool { pool_id: "main".to_string() }, "Tom".to_string(), &id)?;
    let cached = cache(RedisPool { pool_id: "cache".to_string() }, &json!(names))?;
    let config = described(req.query.clone());
    let records = records(&config.service_type, id, req.json()?)?;
    Ok(Response::ok(json!({"names": names, "cached": cached, "records": records})))
}

handler_loop_result!(handle);
