//! Objects that are larger than memory: stored in parts, and read range by range.

use super::call::Arg;
use super::failure::Family;
use super::objects::{ObjectInfo, ObjectStore, StoredObject};
use super::reply::{nothing, payload};
use crate::error::HandlerError;
use serde::Deserialize;
use std::io::{self, BufRead, Read};

/// What is sent of an object at a time (8 MiB). S3 takes parts of 5 MiB or more, and 10,000 of them.
const PART_BYTES: usize = 8 << 20;
const MAX_PARTS: usize = 10_000;
/// What is read of an object at a time (4 MiB).
const RANGE_BYTES: u64 = 4 << 20;

#[derive(Deserialize)]
struct Upload {
    upload_id: String,
}

#[derive(Deserialize)]
struct UploadedPart {
    etag: String,
}

impl ObjectStore {
    /// Stores an object that is read piece by piece, whatever was there before, and however large it is: 8 MiB of it
    /// are in memory at a time. Nothing is stored unless it comes to its end.
    ///
    /// ```no_run
    /// use rust_edge_gateway_sdk_core::prelude::*;
    ///
    /// fn handle(req: StreamRequest) -> Result<Response, HandlerError> {
    ///     let key: String = req.require_path_param("key")?;
    ///     let stored = ObjectStore::new("files").upload(&key, "application/octet-stream", req.body_reader())?;
    ///     Ok(Response::created(json!({"size": stored.size})))
    /// }
    ///
    /// handler_loop_result!(handle);
    /// ```
    ///
    /// # Errors
    /// See [`ObjectStore`]; that of the reader, as `HandlerError::from` makes one of it.
    pub fn upload(&self, key: &str, content_type: &str, mut content: impl Read) -> Result<StoredObject, HandlerError> {
        self.upload_from(key, content_type, &mut content)
    }

    // Not generic: compiled here, and not in every handler.
    #[inline(never)]
    fn upload_from(&self, key: &str, content_type: &str, content: &mut dyn Read) -> Result<StoredObject, HandlerError> {
        let mut part = Vec::new();
        read_part(content, &mut part)?;
        if part.len() < PART_BYTES {
            return self.put_with_type(key, &part, content_type);
        }
        let args = [("key", Arg::Text(key)), ("content_type", Arg::Text(content_type))];
        let upload: Upload = self.call("begin_upload", &args, &[]).result()?;
        let stored = self.upload_parts(key, &upload.upload_id, content, part);
        if stored.is_err() {
            // The error is that of the upload. What this does not remove is removed by a rule of the bucket, if at all.
            let args = [("key", Arg::Text(key)), ("upload_id", Arg::Text(&upload.upload_id))];
            let _ = self.call("abort_upload", &args, &[]).read(nothing);
        }
        stored
    }

    /// Sends the parts, of which the first has been read.
    fn upload_parts(
        &self,
        key: &str,
        upload_id: &str,
        content: &mut dyn Read,
        mut part: Vec<u8>,
    ) -> Result<StoredObject, HandlerError> {
        let (key, upload_id) = (("key", Arg::Text(key)), ("upload_id", Arg::Text(upload_id)));
        let mut etags = Vec::new();
        let mut size = 0;
        while !part.is_empty() {
            if etags.len() == MAX_PARTS {
                let text = format!("an object has at most {} bytes", MAX_PARTS * PART_BYTES);
                return Err(Family::Storage.invalid(&self.pool_id, &text));
            }
            let number = ("number", Arg::Number(etags.len() as u64 + 1));
            let stored: UploadedPart = self.call("upload_part", &[key, upload_id, number], &part).result()?;
            etags.push(stored.etag);
            size += part.len() as u64;
            read_part(content, &mut part)?;
        }
        let etags = serde_json::to_string(&etags).map_err(HandlerError::from)?;
        let stored: UploadedPart =
            self.call("complete_upload", &[key, upload_id, ("etags", Arg::Json(&etags))], &[]).result()?;
        Ok(StoredObject { etag: Some(stored.etag), size })
    }

    /// The content of an object, if there is one, to be read piece by piece: 4 MiB of it are in memory at a time. An
    /// object that is replaced meanwhile is an error, and never a mixture of both.
    ///
    /// ```no_run
    /// use rust_edge_gateway_sdk_core::prelude::*;
    ///
    /// fn handle(req: Request) -> Result<StreamResponse, HandlerError> {
    ///     let key: String = req.require_path_param("key")?;
    ///     let Some(mut object) = ObjectStore::new("files").download(&key)? else {
    ///         return Err(HandlerError::NotFound);
    ///     };
    ///     let length = object.info().size.to_string();
    ///     Ok(StreamResponse::new(move |out| std::io::copy(&mut object, out).map(drop))
    ///         .with_header("Content-Length", length))
    /// }
    ///
    /// handler_loop_result!(handle);
    /// ```
    ///
    /// # Errors
    /// See [`ObjectStore`].
    pub fn download(&self, key: &str) -> Result<Option<ObjectReader>, HandlerError> {
        let reader =
            |info| ObjectReader { store: self.clone(), key: key.to_owned(), info, read: 0, piece: Vec::new(), at: 0 };
        Ok(self.head(key)?.map(reader))
    }
}

/// Reads the content of an object, see [`ObjectStore::download`]. A read that fails has the error of the call, a
/// [`HandlerError`], in it.
pub struct ObjectReader {
    store: ObjectStore,
    key: String,
    info: ObjectInfo,
    /// Bytes that were asked for so far.
    read: u64,
    /// What is left of it begins at `at`.
    piece: Vec<u8>,
    at: usize,
}

impl ObjectReader {
    /// What is known of the object.
    pub fn info(&self) -> &ObjectInfo {
        &self.info
    }

    fn next_range(&self) -> Result<Vec<u8>, HandlerError> {
        let end = self.info.size.min(self.read + RANGE_BYTES);
        let etag = self.info.etag.as_deref().unwrap_or_default();
        let args = [
            ("key", Arg::Text(&self.key)),
            ("start", Arg::Number(self.read)),
            ("end", Arg::Number(end - 1)),
            ("etag", Arg::Text(etag)),
        ];
        let bytes = self.store.call("get_range", &args, &[]).read(payload)?;
        match bytes.len() as u64 == end - self.read {
            true => Ok(bytes),
            false => Err(Family::Storage.invalid(&self.store.pool_id, "a part of an object has another length")),
        }
    }
}

impl BufRead for ObjectReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() && self.read < self.info.size {
            self.at = 0;
            // The piece is given up before the next has come.
            self.piece = Vec::new();
            self.piece = self.next_range().map_err(io::Error::other)?;
            self.read += self.piece.len() as u64;
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, bytes: usize) {
        self.at = self.piece.len().min(self.at + bytes);
    }
}

impl Read for ObjectReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

/// Reads the next part: less than [`PART_BYTES`] only at the end.
fn read_part(content: &mut dyn Read, part: &mut Vec<u8>) -> io::Result<()> {
    part.clear();
    content.take(PART_BYTES as u64).read_to_end(part).map(drop)
}
