//! The result of a query, written as JSON row by row.
use std::sync::Arc;

use crate::MAX_BODY_BYTES;
use crate::error::{CallError, Kind};
use crate::memory::{MemoryBudget, Share};

/// The JSON text of a result.
pub struct ResultText {
    text: Vec<u8>,
    /// The part of the memory of the process that the text takes.
    share: Share,
    rows: usize,
}

impl ResultText {
    /// `head` is the text up to the first row.
    pub fn new(head: &[u8], memory: &Arc<MemoryBudget>) -> Self {
        let mut text = Vec::with_capacity(head.len() + 256);
        text.extend_from_slice(head);
        Self { text, share: Share::new(memory.clone()), rows: 0 }
    }

    /// The head of a result with these columns.
    pub fn head<'a>(columns: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut head = b"{\"columns\":[".to_vec();
        for (index, column) in columns.into_iter().enumerate() {
            if index > 0 {
                head.push(b',');
            }
            super::json::write_escaped(column, &mut head);
        }
        head.extend_from_slice(b"],\"rows\":[");
        head
    }

    /// Where the values of the next row are written, between `begin_row` and `end_row`.
    pub fn values(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    pub fn begin_row(&mut self) {
        self.text.extend_from_slice(if self.rows == 0 { b"[" } else { b",[" });
        self.rows += 1;
    }

    pub fn end_row(&mut self) {
        self.text.push(b']');
    }

    /// Makes room for what is written next, and takes the memory for it. When there is none, `waits` is called until it
    /// returns false.
    ///
    /// # Errors
    ///
    /// `invalid` when the result would be too large, `busy` when there is no memory for it.
    pub fn make_room(&mut self, bytes: usize, mut waits: impl FnMut() -> bool) -> Result<(), CallError> {
        let (held, wanted) = (self.text.capacity(), self.text.len() + bytes);
        if wanted <= held {
            return Ok(());
        }
        // What is written may turn out to be shorter.
        if self.text.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        let capacity = wanted.max((2 * held).min(MAX_BODY_BYTES));
        while capacity > Share::FREE && !self.share.set(capacity) {
            if !waits() {
                return Err(no_memory());
            }
        }
        self.text.reserve_exact(capacity - self.text.len());
        Ok(())
    }

    /// Takes the memory for what was written. It is called after each value.
    ///
    /// # Errors
    ///
    /// `invalid` when the result has become too large, `busy` when there is no memory for it.
    pub fn account(&mut self) -> Result<(), CallError> {
        if self.text.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        if self.text.capacity() > Share::FREE && !self.share.set(self.text.capacity()) {
            return Err(no_memory());
        }
        Ok(())
    }

    /// The complete text, and the memory that is held for it.
    ///
    /// # Errors
    ///
    /// `invalid` when it is too large.
    pub fn finish(mut self, rows_affected: u64, last_insert_id: Option<i64>) -> Result<(Vec<u8>, Share), CallError> {
        let id = last_insert_id.map_or_else(|| "null".to_owned(), |id| id.to_string());
        let end = format!("],\"rows_affected\":{rows_affected},\"last_insert_id\":{id}}}");
        self.text.extend_from_slice(end.as_bytes());
        if self.text.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        if self.text.capacity() > Share::FREE {
            self.text.shrink_to_fit();
            // Less than was held.
            self.share.set(self.text.len());
        }
        Ok((self.text, self.share))
    }
}

/// The error of an answer for which there is no memory.
pub fn no_memory() -> CallError {
    let text = "there is no memory for this answer at the moment; ask for less, or try again later (SERVICE_MEMORY_MB)";
    CallError::new(Kind::Busy, text)
}

/// The error of a result that no frame can hold.
pub fn too_large() -> CallError {
    let mib = MAX_BODY_BYTES / (1024 * 1024);
    let advice = "select fewer rows or columns, or read it in parts (LIMIT)";
    CallError::new(Kind::Invalid, format!("the result is larger than {mib} MiB; {advice}"))
}
