//! Options of MongoDB's operations, and the result of changes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How documents are found: in which order, which of them, and which of their fields.
///
/// ```
/// use rust_edge_gateway_sdk_core::prelude::*;
/// let tenth_page = FindOptions::new().descending("age").ascending("name").skip(90).limit(10);
/// ```
#[derive(Debug, Clone, Default)]
pub struct FindOptions {
    pub(super) sort: Vec<(String, i8)>,
    pub(super) projection: Option<Value>,
    pub(super) skip: Option<u64>,
    pub(super) limit: Option<u64>,
}

impl FindOptions {
    /// All documents, whole, in the order the server has them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sorts by a field, the smallest first; by the field named first before those named later.
    #[must_use]
    pub fn ascending(mut self, field: impl Into<String>) -> Self {
        self.sort.push((field.into(), 1));
        self
    }

    /// Sorts by a field, the largest first; by the field named first before those named later.
    #[must_use]
    pub fn descending(mut self, field: impl Into<String>) -> Self {
        self.sort.push((field.into(), -1));
        self
    }

    /// Which fields to return: `json!({"name": 1, "_id": 0})`.
    #[must_use]
    pub fn projection(mut self, projection: Value) -> Self {
        self.projection = Some(projection);
        self
    }

    /// Leaves out the first so many.
    #[must_use]
    pub fn skip(mut self, documents: u64) -> Self {
        self.skip = Some(documents);
        self
    }

    /// Returns at most so many.
    #[must_use]
    pub fn limit(mut self, documents: u64) -> Self {
        self.limit = Some(documents);
        self
    }
}

/// How [`MongoPool::find_one_and_update`](super::MongoPool::find_one_and_update) works. By default, it changes only
/// what is there and returns the document as it is afterwards.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpdateOptions {
    pub(super) upsert: bool,
    pub(super) before: bool,
}

impl UpdateOptions {
    /// The default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts a document when none matches.
    #[must_use]
    pub fn upsert(mut self) -> Self {
        self.upsert = true;
        self
    }

    /// Returns the document as it was before.
    #[must_use]
    pub fn return_before(mut self) -> Self {
        self.before = true;
        self
    }
}

/// What an update did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateResult {
    /// Documents that the filter matched.
    pub matched: u64,
    /// Documents that were changed by it.
    pub modified: u64,
    /// The `_id` of the document that was inserted because none matched.
    #[serde(default)]
    pub upserted_id: Option<Value>,
}
