//! Records as files named `<id>.json`, in an object storage or on a file server.

use super::id;
use crate::error::HandlerError;
use crate::services::files::{FileKind, FtpPool};
use crate::services::objects::ObjectStore;
use serde_json::Value;

const ENDING: &str = ".json";

/// Where files can be kept.
pub trait FileStore {
    /// The content of a file, if there is one.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, HandlerError>;
    /// Whether there is such a file.
    fn has(&self, path: &str) -> Result<bool, HandlerError>;
    /// Stores a file.
    fn write(&self, path: &str, content: &str) -> Result<(), HandlerError>;
    /// Deletes a file. Whether it was there.
    fn remove(&self, path: &str) -> Result<bool, HandlerError>;
    /// The names of the files in a folder, which ends in `/` or is empty.
    fn names(&self, folder: &str) -> Result<Vec<String>, HandlerError>;
}

/// A folder of records.
#[derive(Debug, Clone)]
pub struct Files<S> {
    store: S,
    /// Ends in `/`, or is empty.
    folder: String,
}

impl<S: FileStore> Files<S> {
    pub fn new(store: S, folder: String) -> Self {
        let folder = match folder.trim_matches('/') {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        Files { store, folder }
    }

    pub fn get(&self, id: &str) -> Result<Option<Value>, HandlerError> {
        let path = self.path(id);
        self.store.read(&path)?.map(|content| parse(&path, &content)).transpose()
    }

    pub fn list(&self) -> Result<Vec<Value>, HandlerError> {
        let mut names = self.store.names(&self.folder)?;
        names.sort_unstable();
        let mut records = Vec::with_capacity(names.len());
        for name in names {
            let Some(id) = name.strip_suffix(ENDING).filter(|id| id::is_valid(id)) else { continue };
            // It may have been deleted since.
            records.extend(self.get(id)?);
        }
        Ok(records)
    }

    pub fn insert(&self, id: &str, record: &str) -> Result<bool, HandlerError> {
        let path = self.path(id);
        if self.store.has(&path)? {
            return Ok(false);
        }
        self.store.write(&path, record)?;
        Ok(true)
    }

    pub fn replace(&self, id: &str, record: &str) -> Result<bool, HandlerError> {
        let path = self.path(id);
        if !self.store.has(&path)? {
            return Ok(false);
        }
        self.store.write(&path, record)?;
        Ok(true)
    }

    pub fn delete(&self, id: &str) -> Result<bool, HandlerError> {
        self.store.remove(&self.path(id))
    }

    fn path(&self, id: &str) -> String {
        format!("{}{id}{ENDING}", self.folder)
    }
}

fn parse(path: &str, content: &[u8]) -> Result<Value, HandlerError> {
    serde_json::from_slice(content)
        .map_err(|error| HandlerError::StorageError(format!("{path:?} is no record in JSON: {error}")))
}

impl FileStore for ObjectStore {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, HandlerError> {
        self.get(path)
    }

    fn has(&self, path: &str) -> Result<bool, HandlerError> {
        self.exists(path)
    }

    fn write(&self, path: &str, content: &str) -> Result<(), HandlerError> {
        self.put_with_type(path, content, "application/json").map(drop)
    }

    fn remove(&self, path: &str) -> Result<bool, HandlerError> {
        self.delete(path)
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, HandlerError> {
        let name = |key: String| key.strip_prefix(folder).map(str::to_owned);
        // What lies in folders below is no record: ids have no slash.
        Ok(self.list(folder)?.into_iter().filter_map(|object| name(object.key)).collect())
    }
}

impl FileStore for FtpPool {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, HandlerError> {
        self.get(path)
    }

    fn has(&self, path: &str) -> Result<bool, HandlerError> {
        Ok(self.get(path)?.is_some())
    }

    fn write(&self, path: &str, content: &str) -> Result<(), HandlerError> {
        self.put(path, content).map(drop)
    }

    fn remove(&self, path: &str) -> Result<bool, HandlerError> {
        self.delete(path)
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, HandlerError> {
        let folder = folder.trim_end_matches('/');
        let entries = match self.list(folder) {
            // It is made with the first file in it.
            Err(HandlerError::StorageError(_)) if lacks(self, folder)? => return Ok(Vec::new()),
            listed => listed?,
        };
        Ok(entries.into_iter().filter(|entry| entry.kind == FileKind::File).map(|entry| entry.name).collect())
    }
}

/// Whether a folder is missing, from what its parent has.
fn lacks(ftp: &FtpPool, folder: &str) -> Result<bool, HandlerError> {
    let (parent, name) = folder.rsplit_once('/').unwrap_or(("", folder));
    match ftp.list(parent) {
        Ok(entries) => Ok(!name.is_empty() && entries.iter().all(|entry| entry.name != name)),
        Err(HandlerError::StorageError(_)) if !parent.is_empty() => lacks(ftp, parent),
        Err(error) => Err(error),
    }
}
