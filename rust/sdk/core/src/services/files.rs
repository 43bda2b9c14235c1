//! [`FtpPool`]: files on an FTP or SFTP server.

use super::call::{Arg, Call};
use super::failure::Family;
use super::reply::{optional_payload, text, Deletion};
use crate::error::HandlerError;
use serde::{Deserialize, Serialize};

/// A folder of an FTP, FTPS or SFTP server that is bound to the endpoint. Paths are below the service's `base_path` and
/// cannot leave it.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let ftp = FtpPool::new("partner");
///     ftp.put("orders/7.json", req.body_bytes())?;
///     Ok(Response::ok(ftp.list("orders")?))
/// }
/// ```
///
/// Every call fails with [`HandlerError::StorageError`] when the server refuses it, and with the errors that all
/// services share: [`HandlerError::PoolNotBound`], [`HandlerError::ServiceInactive`],
/// [`HandlerError::BackendUnavailable`], [`HandlerError::DeadlineExceeded`], [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone)]
pub struct FtpPool {
    /// The name under which the service is bound to the endpoint.
    pub pool_id: String,
}

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A link, a socket and so on.
    Other,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name, without the folder.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Bytes of a file.
    #[serde(default)]
    pub size: u64,
    /// When it was changed, if the server says.
    #[serde(default)]
    pub modified: Option<String>,
}

#[derive(Deserialize)]
struct Size {
    size: u64,
}

impl FtpPool {
    /// The folder that is bound as `pool_id`. Connects to nothing.
    pub fn new(pool_id: impl Into<String>) -> Self {
        FtpPool { pool_id: pool_id.into() }
    }

    /// The content of a file, if there is one: at most 64 MiB.
    ///
    /// # Errors
    /// See [`FtpPool`].
    pub fn get(&self, path: &str) -> Result<Option<Vec<u8>>, HandlerError> {
        self.call("get", &[("path", Arg::Text(path))], &[]).read(optional_payload)
    }

    /// The content of a file as text, if there is one.
    ///
    /// # Errors
    /// See [`FtpPool`]; [`HandlerError::StorageError`] when it is not UTF-8.
    pub fn get_string(&self, path: &str) -> Result<Option<String>, HandlerError> {
        text(Family::Storage, &self.pool_id, path, self.get(path)?)
    }

    /// Stores a file, whatever was there before, and makes the folders it is in. It appears under its name when all of
    /// it is there. Returns its size in bytes.
    ///
    /// # Errors
    /// See [`FtpPool`].
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) -> Result<u64, HandlerError> {
        self.store(path, content.as_ref())
    }

    /// What is in a folder; `""` for the uppermost.
    ///
    /// # Errors
    /// See [`FtpPool`].
    pub fn list(&self, path: &str) -> Result<Vec<FileEntry>, HandlerError> {
        self.call("list", &[("path", Arg::Text(path))], &[]).json()
    }

    /// Deletes a file. Whether it was there.
    ///
    /// # Errors
    /// See [`FtpPool`].
    pub fn delete(&self, path: &str) -> Result<bool, HandlerError> {
        let Deletion { deleted } = self.call("delete", &[("path", Arg::Text(path))], &[]).result()?;
        Ok(deleted)
    }

    // Not generic: compiled here, and not in every handler.
    #[inline(never)]
    fn store(&self, path: &str, content: &[u8]) -> Result<u64, HandlerError> {
        let Size { size } = self.call("put", &[("path", Arg::Text(path))], content).result()?;
        Ok(size)
    }

    fn call<'a>(&'a self, operation: &'static str, args: &'a [(&'static str, Arg<'a>)], payload: &'a [u8]) -> Call<'a> {
        Call::new(Family::Storage, &self.pool_id, operation, args, payload)
    }
}
