//! [`MongoPool`].

use super::call::{Arg, Call};
use super::failure::Family;
use super::mongo_options::{FindOptions, UpdateOptions, UpdateResult};
use super::mongo_payload::{command, Payload};
use crate::error::HandlerError;
use crate::json_bridge::write::to_extended_json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A MongoDB database that is bound to the endpoint.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let mongo = MongoPool::new("documents");
///     let pet: JsonValue = req.json()?;
///     mongo.insert_one("pets", &pet)?;
///     let cats = mongo.find("pets", json!({"kind": "cat"}), FindOptions::new().ascending("name").limit(20))?;
///     Ok(Response::ok(cats))
/// }
/// ```
///
/// Filters, documents and updates are whatever serialises to JSON, and are read as MongoDB's
/// [Extended JSON](https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/): `{"$oid": "..."}` is an
/// ObjectId, `{"$date": "2026-01-31T00:00:00Z"}` a date. Documents come back in the same form. `json!` sorts the
/// members of objects by name; where their order matters, as in `$sort` by two fields, pass a struct, whose fields keep
/// it.
///
/// Every call fails with [`HandlerError::DatabaseError`] when MongoDB refuses it, and with the errors that all services
/// share: [`HandlerError::PoolNotBound`], [`HandlerError::ServiceInactive`], [`HandlerError::BackendUnavailable`],
/// [`HandlerError::DeadlineExceeded`], [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone)]
pub struct MongoPool {
    /// The name under which the service is bound to the endpoint.
    pub pool_id: String,
}

#[derive(Deserialize)]
struct InsertedOne {
    inserted_id: Value,
}

#[derive(Deserialize)]
struct InsertedMany {
    inserted_ids: Vec<Value>,
}

#[derive(Deserialize)]
struct DeleteResult {
    deleted: u64,
}

/// The methods that change documents: the operation, what is done to what the filter matches, and an option.
macro_rules! updates {
    ($($(#[$doc:meta])* $method:ident: $operation:literal $change:ident $($option:ident)?;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// See [`MongoPool`].
        pub fn $method(
            &self,
            collection: &str,
            filter: impl Serialize,
            $change: impl Serialize,
        ) -> Result<UpdateResult, HandlerError> {
            let payload = Payload::new().with("filter", &filter).with(stringify!($change), &$change);
            $(let payload = payload.with(stringify!($option), &true);)?
            self.updated($operation, collection, payload)
        }
    )*};
}

impl MongoPool {
    /// The database that is bound as `pool_id`. Connects to nothing.
    pub fn new(pool_id: impl Into<String>) -> Self {
        MongoPool { pool_id: pool_id.into() }
    }

    /// The documents that match a filter; `json!({})` matches all.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn find(
        &self,
        collection: &str,
        filter: impl Serialize,
        options: FindOptions,
    ) -> Result<Vec<Value>, HandlerError> {
        self.documents("find", collection, Payload::find(&filter, &options))
    }

    /// A document that matches a filter, if there is one.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn find_one(&self, collection: &str, filter: impl Serialize) -> Result<Option<Value>, HandlerError> {
        self.document("find_one", collection, Payload::new().with("filter", &filter))
    }

    /// The first document that matches a filter, as the options sort them, if there is one.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn find_first(
        &self,
        collection: &str,
        filter: impl Serialize,
        options: FindOptions,
    ) -> Result<Option<Value>, HandlerError> {
        self.document("find_one", collection, Payload::find(&filter, &options))
    }

    /// Inserts a document and returns its `_id`, which MongoDB makes if it has none: `{"$oid": "..."}`.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn insert_one(&self, collection: &str, document: impl Serialize) -> Result<Value, HandlerError> {
        self.inserted_one(collection, Payload::new().with("document", &document))
    }

    /// Inserts documents and returns their `_id`s.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn insert_many(&self, collection: &str, documents: &[impl Serialize]) -> Result<Vec<Value>, HandlerError> {
        self.inserted_many(collection, Payload::new().with("documents", documents))
    }

    updates! {
        /// Changes a document that matches: `json!({"$set": {"sold": true}})`.
        update_one: "update_one" update;
        /// Changes a document that matches, or inserts one if none does.
        upsert_one: "update_one" update upsert;
        /// Changes all documents that match.
        update_many: "update_many" update;
        /// Replaces a document that matches with another; its `_id` stays.
        replace_one: "replace_one" replacement;
        /// Replaces a document that matches with another, or inserts that if none does.
        replace_or_insert_one: "replace_one" replacement upsert;
    }

    /// Deletes a document that matches. How many it were: 0 or 1.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn delete_one(&self, collection: &str, filter: impl Serialize) -> Result<u64, HandlerError> {
        self.deleted("delete_one", collection, Payload::new().with("filter", &filter))
    }

    /// Deletes all documents that match. How many it were.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn delete_many(&self, collection: &str, filter: impl Serialize) -> Result<u64, HandlerError> {
        self.deleted("delete_many", collection, Payload::new().with("filter", &filter))
    }

    /// Changes a document that matches and returns it, in one step.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn find_one_and_update(
        &self,
        collection: &str,
        filter: impl Serialize,
        update: impl Serialize,
        options: UpdateOptions,
    ) -> Result<Option<Value>, HandlerError> {
        let returned = if options.before { "before" } else { "after" };
        let payload = Payload::new().with("filter", &filter).with("update", &update);
        let payload = payload.with("upsert", &options.upsert).with("return", returned);
        self.document("find_one_and_update", collection, payload)
    }

    /// How many documents match a filter.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn count(&self, collection: &str, filter: impl Serialize) -> Result<u64, HandlerError> {
        self.counted(collection, Payload::new().with("filter", &filter))
    }

    /// What a pipeline makes of the documents: `json!([{"$match": {...}}, {"$group": {...}}])`.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn aggregate(&self, collection: &str, pipeline: impl Serialize) -> Result<Vec<Value>, HandlerError> {
        self.documents("aggregate", collection, Payload::new().with("pipeline", &pipeline))
    }

    /// Runs any command of the database and returns what it says. A command is an object whose first member names it,
    /// which `json!` would not keep first; so name and value are parameters of their own, and `more` has the other
    /// members: `mongo.command("collStats", "pets", json!({"scale": 1024}))`.
    ///
    /// # Errors
    /// See [`MongoPool`].
    pub fn command(&self, name: &str, value: impl Serialize, more: impl Serialize) -> Result<Value, HandlerError> {
        self.run_command(name, to_extended_json(&value), to_extended_json(&more))
    }

    // What follows is not generic, and so compiled here and not in every handler.

    #[inline(never)]
    fn documents(
        &self,
        operation: &'static str,
        collection: &str,
        payload: Payload,
    ) -> Result<Vec<Value>, HandlerError> {
        self.call(operation, collection, payload)
    }

    #[inline(never)]
    fn document(
        &self,
        operation: &'static str,
        collection: &str,
        payload: Payload,
    ) -> Result<Option<Value>, HandlerError> {
        self.call(operation, collection, payload)
    }

    #[inline(never)]
    fn updated(
        &self,
        operation: &'static str,
        collection: &str,
        payload: Payload,
    ) -> Result<UpdateResult, HandlerError> {
        self.call(operation, collection, payload)
    }

    #[inline(never)]
    fn deleted(&self, operation: &'static str, collection: &str, payload: Payload) -> Result<u64, HandlerError> {
        let DeleteResult { deleted } = self.call(operation, collection, payload)?;
        Ok(deleted)
    }

    #[inline(never)]
    fn inserted_one(&self, collection: &str, payload: Payload) -> Result<Value, HandlerError> {
        let InsertedOne { inserted_id } = self.call("insert_one", collection, payload)?;
        Ok(inserted_id)
    }

    #[inline(never)]
    fn inserted_many(&self, collection: &str, payload: Payload) -> Result<Vec<Value>, HandlerError> {
        let InsertedMany { inserted_ids } = self.call("insert_many", collection, payload)?;
        Ok(inserted_ids)
    }

    #[inline(never)]
    fn counted(&self, collection: &str, payload: Payload) -> Result<u64, HandlerError> {
        self.call("count", collection, payload)
    }

    #[inline(never)]
    fn run_command(
        &self,
        name: &str,
        value: Result<Vec<u8>, String>,
        more: Result<Vec<u8>, String>,
    ) -> Result<Value, HandlerError> {
        let command = value.and_then(|value| command(name, &value, more?));
        self.run("command", &[], Payload::new().with_text("command", command).finish())
    }

    fn call<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        collection: &str,
        payload: Payload,
    ) -> Result<T, HandlerError> {
        self.run(operation, &[("collection", Arg::Text(collection))], payload.finish())
    }

    fn run<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        args: &[(&'static str, Arg<'_>)],
        payload: Result<Vec<u8>, String>,
    ) -> Result<T, HandlerError> {
        let payload = payload.map_err(|why| Family::Database.invalid(&self.pool_id, &why))?;
        Call::new(Family::Database, &self.pool_id, operation, args, &payload).json()
    }
}
