//! Storage, on small stores in memory behind the protocol: the same behaviour on all three.

use super::json_of;
use super::server::{failure, lock, ok, on, operations, Call};
use rust_edge_gateway_sdk::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Answers as an object storage or a file server does.
fn files(pool: &str) {
    let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
    on(pool, move |call: &Call| {
        let mut files = lock(&files);
        let args = &call.head["args"];
        let text = |name: &str| args[name].as_str().map(str::to_owned);
        let path = text("key").or_else(|| text("path")).unwrap_or_default();
        match call.head["op"].as_str().unwrap() {
            "get" | "head" => match files.get(&path) {
                Some(content) => ok(json!({"found": true, "size": content.len()}), content),
                None => ok(json!({"found": false}), b""),
            },
            "put" => {
                files.insert(path, call.payload.clone());
                ok(json!({"size": call.payload.len()}), b"")
            }
            "delete" => ok(json!({"deleted": files.remove(&path).is_some()}), b""),
            _ if args["prefix"].is_string() => {
                let prefix = text("prefix").unwrap();
                let keys = files.keys().filter(|key| key.starts_with(&prefix));
                let list: Vec<JsonValue> = keys.map(|key| json!({"key": key, "size": 1})).collect();
                ok(JsonValue::Null, json!(list).to_string())
            }
            _ => match entries(&files, &path) {
                list if list.is_empty() && !path.is_empty() => failure("backend", "there is no folder"),
                list => ok(JsonValue::Null, json!(list).to_string()),
            },
        }
    });
}

/// What is in a folder.
fn entries(files: &BTreeMap<String, Vec<u8>>, folder: &str) -> Vec<JsonValue> {
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let below = files.keys().filter_map(|path| path.strip_prefix(&prefix));
    let kinds: BTreeMap<&str, &str> =
        below.map(|path| path.split_once('/').map_or((path, "file"), |(name, _)| (name, "folder"))).collect();
    kinds.into_iter().map(|(name, kind)| json!({"name": name, "kind": kind, "size": 1, "modified": null})).collect()
}

/// Answers to the statements that Storage makes, as a database with the given answer to `SELECT version()` does.
fn database(pool: &str, version: Option<&'static str>) {
    let table: Arc<Mutex<Option<BTreeMap<String, String>>>> = Arc::default();
    on(pool, move |call: &Call| {
        let mut table = lock(&table);
        let statement = json_of(&call.payload);
        let param = |at: usize| statement["params"][at].as_str().unwrap().to_owned();
        let found = |rows: Vec<JsonValue>| {
            ok(
                JsonValue::Null,
                json!({"columns": ["id", "data"], "rows": rows, "rows_affected": 0, "last_insert_id": null})
                    .to_string(),
            )
        };
        let changed = |n: usize| ok(json!({"rows_affected": n, "last_insert_id": null}), b"");
        let sql = statement["sql"].as_str().unwrap();
        match (sql, &mut *table) {
            ("SELECT version()", _) => match version {
                Some(version) => ok(JsonValue::Null, json!({"columns": ["v"], "rows": [[version]]}).to_string()),
                None => failure("backend", "no such function: version"),
            },
            (sql, table) if sql.starts_with("CREATE TABLE IF NOT EXISTS pets (") => {
                let types = match version {
                    Some("8.4.2") => {
                        "(id VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, data LONGTEXT NOT NULL)"
                    }
                    _ => "(id VARCHAR(255) PRIMARY KEY, data TEXT NOT NULL)",
                };
                assert!(sql.ends_with(types), "{sql}");
                table.get_or_insert_with(BTreeMap::new);
                changed(0)
            }
            (_, None) => failure("backend", "no such table: pets"),
            ("SELECT id, data FROM pets WHERE 1 = 0", _) => found(vec![]),
            ("SELECT id, data FROM pets", Some(rows)) => {
                found(rows.iter().rev().map(|(id, data)| json!([id, data])).collect())
            }
            (sql, Some(rows)) if sql.starts_with("SELECT") => {
                found(rows.get(&param(0)).map(|data| json!([param(0), data])).into_iter().collect())
            }
            (sql, Some(rows)) if sql.starts_with("INSERT") => match rows.contains_key(&param(0)) {
                true => failure("backend", "UNIQUE constraint failed"),
                false => {
                    rows.insert(param(0), param(1));
                    changed(1)
                }
            },
            (sql, Some(rows)) if sql.starts_with("UPDATE") => match rows.get_mut(&param(1)) {
                // Counts like MySQL: only what has become different.
                Some(data) => changed(usize::from(std::mem::replace(data, param(0)) != param(0))),
                None => changed(0),
            },
            (sql, Some(rows)) => {
                assert!(sql.starts_with("DELETE"), "{sql}");
                changed(usize::from(rows.remove(&param(0)).is_some()))
            }
        }
    });
}

fn behaves(storage: &Storage) {
    assert_eq!(storage.all().unwrap(), Vec::<JsonValue>::new());
    assert_eq!(storage.get("tom").unwrap(), None);
    let tom = storage.add(&json!({"id": "tom", "n": i64::MAX, "text": "ä\"\\"})).unwrap();
    assert_eq!(tom, json!({"id": "tom", "n": i64::MAX, "text": "ä\"\\"}));
    assert_eq!(storage.get("tom").unwrap(), Some(tom.clone()));
    assert!(matches!(storage.add(&json!({"id": "tom"})), Err(HandlerError::Conflict(_))));
    assert_eq!(storage.get("tom").unwrap(), Some(tom));

    #[derive(Serialize)]
    struct Pet {
        name: &'static str,
    }
    let made = storage.add(&Pet { name: "Ida" }).unwrap();
    let id = made["id"].as_str().unwrap();
    assert!(id.len() == 36 && &id[14..15] == "4" && "89ab".contains(&id[19..20]), "{id}");
    assert_eq!(made["name"], "Ida");
    let other = storage.add(&json!({"id": null, "name": "Ida"})).unwrap();
    assert_ne!(other["id"], made["id"]);

    let mut ids: Vec<&str> = vec!["tom", id, other["id"].as_str().unwrap()];
    ids.sort_unstable();
    let listed = storage.all().unwrap();
    assert_eq!(listed.iter().map(|record| record["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);

    let changed = storage.replace("tom", &json!({"id": "other", "n": 2})).unwrap();
    assert_eq!(changed, Some(json!({"id": "tom", "n": 2})));
    assert_eq!(storage.replace("tom", &json!({"n": 2})).unwrap(), changed);
    assert_eq!(storage.get("tom").unwrap(), changed);
    assert_eq!(storage.replace("nobody", &json!({})).unwrap(), None);

    assert!(storage.delete("tom").unwrap());
    assert!(!storage.delete("tom").unwrap());
    assert_eq!(storage.get("tom").unwrap(), None);

    for id in ["", ".", "..", ".hidden", "a/b", "a b", "ä", "a\0", &"x".repeat(129)] {
        assert!(matches!(storage.get(id), Err(HandlerError::ValidationError(_))), "{id:?}");
        assert!(matches!(storage.delete(id), Err(HandlerError::ValidationError(_))), "{id:?}");
        assert!(matches!(storage.replace(id, &json!({})), Err(HandlerError::ValidationError(_))), "{id:?}");
        assert!(matches!(storage.add(&json!({"id": id})), Err(HandlerError::ValidationError(_))), "{id:?}");
    }
    for record in [json!([]), json!("a"), json!({"id": 7})] {
        assert!(matches!(storage.add(&record), Err(HandlerError::ValidationError(_))), "{record}");
    }
    assert!(storage.add(&json!({"id": "x".repeat(128)})).is_ok());
    assert!(storage.delete(&"x".repeat(128)).unwrap());
    behaves_as_in_0_1(storage);
}

fn behaves_as_in_0_1(storage: &Storage) {
    for record in storage.all().unwrap() {
        storage.delete(record["id"].as_str().unwrap()).unwrap();
    }
    storage.create("a", &json!({"id": "a", "status": "open", "n": 1})).unwrap();
    storage.create("b", &json!({"status": "closed"})).unwrap();
    storage.create("c", &json!({"id": 3, "status": "open"})).unwrap();
    storage.create("d", &json!(["no object"])).unwrap();
    assert_eq!(storage.get("a").unwrap(), Some(json!({"id": "a", "status": "open", "n": 1})));
    assert_eq!(storage.get("b").unwrap(), Some(json!({"id": "b", "status": "closed"})));
    assert_eq!(storage.get("c").unwrap(), Some(json!({"id": 3, "status": "open"})));
    assert_eq!(storage.get("d").unwrap(), Some(json!(["no object"])));
    assert!(matches!(storage.create("a", &json!({})), Err(HandlerError::Conflict(_))));
    assert!(matches!(storage.update("e", &json!({})), Err(HandlerError::NotFoundMessage(_))));
    assert_eq!(storage.get("e").unwrap(), None);
    storage.update("a", &json!({"status": "closed"})).unwrap();
    assert_eq!(
        storage.list(Some("closed")).unwrap(),
        [json!({"id": "a", "status": "closed"}), json!({"id": "b", "status": "closed"}),]
    );
    assert_eq!(storage.list(Some("open")).unwrap(), [json!({"id": 3, "status": "open"})]);
    assert_eq!(storage.list(Some("3")).unwrap(), Vec::<JsonValue>::new());
    assert_eq!(storage.list(None).unwrap().len(), 4);
    for id in ["", "a/b"] {
        assert!(matches!(storage.create(id, &json!({})), Err(HandlerError::ValidationError(_))), "{id:?}");
        assert!(matches!(storage.update(id, &json!({})), Err(HandlerError::ValidationError(_))), "{id:?}");
    }
    for id in ["a", "b", "c", "d"] {
        assert!(storage.delete(id).unwrap());
    }
    // The callers count what is left.
    for id in ["1", "2", "3"] {
        storage.create(id, &json!({})).unwrap();
    }
}

#[test]
fn storages_are_written_and_read_as_in_0_1() {
    use rust_edge_gateway_sdk::storage::{Storage, StorageType};
    let made = Storage::file_storage("files", "a/b");
    let text = r#"{"storage_type":"filestorage","pool_id":"files","base_path":"a/b","table_name":null}"#;
    assert_eq!(serde_json::to_string(&made).unwrap(), text);
    assert_eq!(serde_json::from_str::<Storage>(text).unwrap(), made);
    let kinds = [StorageType::Database, StorageType::ObjectStorage, StorageType::FileStorage];
    assert_eq!(serde_json::to_string(&kinds).unwrap(), r#"["database","objectstorage","filestorage"]"#);
    let literal = Storage {
        storage_type: StorageType::Database,
        pool_id: "never called".into(),
        base_path: None,
        table_name: None,
    };
    let error = literal.list(None).unwrap_err().to_string();
    assert!(error.contains("cannot be the name of a table"), "{error}");
}

#[test]
fn a_storage_in_a_database_behaves_and_looks_for_its_table_once() {
    for (pool, version) in [
        ("storage: sqlite", None),
        ("storage: postgres", Some("PostgreSQL 18.1 on x86_64")),
        ("storage: mysql", Some("8.4.2")),
    ] {
        database(pool, version);
        behaves(&Storage::database(pool, "pets"));
        let creations = operations(pool).len();
        // The table is looked for once.
        Storage::database(pool, "pets").get("a").unwrap();
        assert_eq!(operations(pool).len(), creations + 1);
    }
}

#[test]
fn a_storage_in_an_object_storage_behaves_and_names_an_object_that_is_no_record() {
    files("storage: objects");
    behaves(&Storage::object_storage("storage: objects", "shop/pets/"));
    let objects = ObjectStore::new("storage: objects");
    objects.put("shop/pets/readme.txt", "no record").unwrap();
    objects.put("shop/pets/more/a.json", "no record").unwrap();
    objects.put("shop/pets-too/a.json", "no record").unwrap();
    assert_eq!(Storage::object_storage("storage: objects", "/shop/pets").list(None).unwrap().len(), 3);
    objects.put("shop/pets/broken.json", "{").unwrap();
    let error = Storage::object_storage("storage: objects", "shop/pets").get("broken").unwrap_err().to_string();
    assert!(error.contains("\"shop/pets/broken.json\" is no record in JSON"), "{error}");
}

#[test]
fn a_storage_on_a_file_server_behaves_and_reports_what_is_refused_there() {
    files("storage: files");
    behaves(&Storage::file_storage("storage: files", "pets"));
    behaves(&Storage::file_storage("storage: files", "shop/of/pets"));
    FtpPool::new("storage: files").put("flat.json", r#"{"id": "flat"}"#).unwrap();
    assert_eq!(Storage::file_storage("storage: files", "").list(None).unwrap(), [json!({"id": "flat"})]);
    // Other refusals are no missing folders.
    on("storage: refuses", |call| match call.head["args"]["path"].as_str() {
        Some("") => ok(JsonValue::Null, json!([{"name": "pets", "kind": "folder"}]).to_string()),
        _ => failure("backend", "permission denied"),
    });
    let error = Storage::file_storage("storage: refuses", "pets").list(None).unwrap_err().to_string();
    assert!(error.contains("permission denied"), "{error}");
}

#[test]
fn names_of_tables_are_checked() {
    for name in ["", "1a", "a-b", "a; DROP TABLE b", "ä", "a\"", &"x".repeat(64)] {
        let error = Storage::database("never called", name).list(None).unwrap_err();
        assert!(error.to_string().contains("cannot be the name of a table"), "{error}");
    }
}

#[test]
fn a_backend_that_is_away_is_no_reason_to_make_a_table() {
    on("storage: away", |_| failure("unavailable", "refused"));
    let error = Storage::database("storage: away", "pets").list(None).unwrap_err();
    assert!(matches!(error, HandlerError::BackendUnavailable(_)), "{error}");
    assert_eq!(operations("storage: away"), ["query"]);
}
