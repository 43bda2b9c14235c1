//! Rows of a result as JSON, written as they arrive.
use std::cell::OnceCell;
use std::sync::Arc;

use edge_service::memory::{MemoryBudget, Share};
use edge_service::sql::{self, no_memory};

use super::failure::Failure;
use super::messages::Members;
use super::types::{Encoder, Types};

/// The columns of a result.
pub struct Columns {
    /// The JSON text up to the first row.
    head: Vec<u8>,
    pub oids: Vec<u32>,
    /// There once all types are known.
    encoders: OnceCell<Vec<Encoder>>,
}

impl Columns {
    /// Reads a RowDescription. `None`: it is garbled.
    pub fn read(body: &[u8]) -> Option<Self> {
        let mut members = Members(body);
        let count = usize::try_from(members.i16()?).ok()?;
        let mut oids = Vec::with_capacity(count);
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            names.push(members.text()?);
            // The table and the column in it; then size, modifier and format, which is text.
            members.bytes(6)?;
            oids.push(members.u32()?);
            members.bytes(8)?;
        }
        let head = sql::ResultText::head(names);
        Some(Self { head, oids, encoders: OnceCell::new() })
    }

    /// Whether it is worth to be kept with a prepared statement.
    pub fn is_small(&self) -> bool {
        self.head.len() <= 64 * 1024
    }

    /// `None` while there are unknown types.
    pub fn encoders(&self, types: &Types) -> Option<&[Encoder]> {
        if self.encoders.get().is_none() {
            let known: Option<Vec<_>> = self.oids.iter().map(|oid| types.encoder(*oid)).collect();
            // It was empty.
            let _ = self.encoders.set(known?);
        }
        self.encoders.get().map(Vec::as_slice)
    }

    pub fn unknown(&self, types: &Types) -> Vec<u32> {
        let mut unknown: Vec<_> = self.oids.iter().copied().filter(|oid| types.encoder(*oid).is_none()).collect();
        unknown.sort_unstable();
        unknown.dedup();
        unknown
    }
}

/// The JSON text of a result.
pub struct ResultText(sql::ResultText);

impl ResultText {
    /// `columns` is `None` when the statement returns no rows.
    pub fn new(columns: Option<&Columns>, memory: &Arc<MemoryBudget>) -> Self {
        let head = columns.map_or(&b"{\"columns\":[],\"rows\":["[..], |columns| &columns.head);
        Self(sql::ResultText::new(head, memory))
    }

    /// Adds a DataRow.
    ///
    /// # Errors
    ///
    /// The row is garbled, or the result has become too large.
    pub fn add(&mut self, body: &[u8], encoders: &[Encoder]) -> Result<(), Failure> {
        self.0.begin_row();
        let mut members = Members(body);
        if members.i16().and_then(|count| usize::try_from(count).ok()) != Some(encoders.len()) {
            return Err(Failure::Garbled);
        }
        for (index, encoder) in encoders.iter().enumerate() {
            let text = self.0.values();
            if index > 0 {
                text.push(b',');
            }
            match value(&mut members).ok_or(Failure::Garbled)? {
                None => text.extend_from_slice(b"null"),
                Some(value) => encoder.write(value, text),
            }
            self.0.account()?;
        }
        self.0.end_row();
        Ok(())
    }

    /// The complete text.
    ///
    /// # Errors
    ///
    /// It is too large.
    pub fn finish(self, rows_affected: u64) -> Result<Vec<u8>, Failure> {
        // From here on its length is counted.
        let (text, _) = self.0.finish(rows_affected, None)?;
        Ok(text)
    }
}

/// Rows whose types must be looked up first.
pub struct PendingRows {
    /// The length of each row, and its DataRow.
    bytes: Vec<u8>,
    share: Share,
}

impl PendingRows {
    pub fn new(memory: &Arc<MemoryBudget>) -> Self {
        Self { bytes: Vec::new(), share: Share::new(memory.clone()) }
    }

    /// # Errors
    ///
    /// There is no memory for it.
    pub fn add(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.bytes.extend_from_slice(&body.len().to_ne_bytes());
        self.bytes.extend_from_slice(body);
        if self.share.set(self.bytes.capacity()) { Ok(()) } else { Err(no_memory().into()) }
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk()?;
            let (body, next) = after.split_at_checked(usize::from_ne_bytes(*length))?;
            rest = next;
            Some(body)
        })
    }
}

/// The values of a row as they came, for statements of this process itself. `None`: it is garbled.
pub fn values(body: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let mut members = Members(body);
    let count = usize::try_from(members.i16()?).ok()?;
    (0..count).map(|_| value(&mut members)).collect()
}

/// `Some(None)` is null.
fn value<'a>(members: &mut Members<'a>) -> Option<Option<&'a [u8]>> {
    match members.i32()? {
        -1 => Some(None),
        length => Some(Some(members.bytes(usize::try_from(length).ok()?)?)),
    }
}

/// The number in a tag like `INSERT 0 5`; `SELECT 5` counts only for CREATE TABLE ... AS.
pub fn rows_affected(tag: &[u8], has_columns: bool) -> u64 {
    let words: Vec<&[u8]> = tag.split(|&byte| byte == b' ').collect();
    let count = match words[..] {
        [b"INSERT", oid, count] if !oid.is_empty() && oid.iter().all(u8::is_ascii_digit) => count,
        [b"UPDATE" | b"DELETE" | b"MERGE", count] => count,
        [b"SELECT", count] if !has_columns => count,
        _ => return 0,
    };
    if !count.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    std::str::from_utf8(count).ok().and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_changed_rows() {
        assert_eq!(rows_affected(b"INSERT 0 5", false), 5);
        assert_eq!(rows_affected(b"UPDATE 7", true), 7);
        assert_eq!(rows_affected(b"SELECT 3", true), 0);
        assert_eq!(rows_affected(b"SELECT 3", false), 3);
        assert_eq!(rows_affected(b"COPY 3", false), 0);
        assert_eq!(rows_affected(b"INSERT 5", false), 0);
        assert_eq!(rows_affected(b"UPDATE +5", false), 0);
    }

    #[test]
    fn refuses_garbled_rows() {
        let mut text = ResultText::new(None, &Arc::new(MemoryBudget::new(1_000_000)));
        assert!(matches!(text.add(&(-5_i16).to_be_bytes(), &[]), Err(Failure::Garbled)));
        assert!(matches!(text.add(b"\0\x01\0\0\0\x09a", &[Encoder::Escaped]), Err(Failure::Garbled)));
        assert!(matches!(text.add(b"\0\x01\xff\xff\xff\xf0", &[Encoder::Escaped]), Err(Failure::Garbled)));
        assert!(matches!(text.add(b"\0\x02", &[Encoder::Escaped]), Err(Failure::Garbled)));
    }

    #[test]
    fn rows_are_kept_as_they_came() {
        let mut rows = PendingRows::new(&Arc::new(MemoryBudget::new(1_000_000)));
        assert!(rows.add(b"\0\x01\xff\xff\xff\xff").is_ok());
        assert!(rows.add(b"\0\x01\0\0\0\x01a").is_ok());
        let read: Vec<_> = rows.iter().map(values).collect();
        assert_eq!(read, [Some(vec![None]), Some(vec![Some(&b"a"[..])])]);
    }
}
