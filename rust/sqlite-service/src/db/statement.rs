//! A prepared statement. This and `authorizer.rs` use the functions of SQLite as they are: `rusqlite` panics when there
//! is no memory for a value, which statements of handlers can bring about, and copies parameters.
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

use rusqlite::{Connection, ffi};

use crate::sql::Value;

/// The result of a function that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub c_int);

/// A value in a row. What it borrows is there until the next step.
#[derive(Debug, PartialEq)]
pub enum Column<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

/// Must be dropped before its connection is closed.
pub struct PreparedStatement {
    raw: NonNull<ffi::sqlite3_stmt>,
}

/// A statement that is being run: reset when this is dropped.
pub struct Run<'a> {
    raw: *mut ffi::sqlite3_stmt,
    /// The statement, and what is bound to it.
    bound: PhantomData<(&'a mut PreparedStatement, &'a [Value])>,
}

impl PreparedStatement {
    /// Prepares the first statement of a text, if it has one, and returns the rest of the text.
    pub fn prepare<'a>(connection: &Connection, sql: &'a str, is_kept: bool) -> Result<(Option<Self>, &'a str), Code> {
        let flags = if is_kept { ffi::SQLITE_PREPARE_PERSISTENT } else { 0 };
        let mut raw = ptr::null_mut();
        let start = sql.as_ptr().cast::<c_char>();
        let mut end = start;
        let length = c_int::try_from(sql.len()).map_err(|_| Code(ffi::SQLITE_TOOBIG))?;
        // SAFETY: the connection is open, and the text as long as said. Where it ends for SQLite is within it.
        let (code, read) = unsafe {
            let handle = connection.handle();
            let code = ffi::sqlite3_prepare_v3(handle, start, length, flags, &raw mut raw, &raw mut end);
            (code, end.offset_from(start))
        };
        if code != ffi::SQLITE_OK {
            return Err(Code(code));
        }
        let rest = usize::try_from(read).ok().and_then(|read| sql.get(read..)).unwrap_or(sql);
        Ok((NonNull::new(raw).map(|raw| Self { raw }), rest))
    }

    /// How many parameters it takes.
    pub fn parameters(&self) -> usize {
        // SAFETY: it was prepared.
        usize::try_from(unsafe { ffi::sqlite3_bind_parameter_count(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// Whether it changes nothing in the file.
    pub fn only_reads(&self) -> bool {
        // SAFETY: it was prepared.
        unsafe { ffi::sqlite3_stmt_readonly(self.raw.as_ptr()) != 0 }
    }

    /// The memory that it holds. To find it out takes as long as to look at all of its instructions.
    pub fn memory_bytes(&self) -> usize {
        // SAFETY: it was prepared.
        let bytes = unsafe { ffi::sqlite3_stmt_status(self.raw.as_ptr(), ffi::SQLITE_STMTSTATUS_MEMUSED, 0) };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Begins to run it. The values are not copied.
    pub fn run<'a>(&'a mut self, params: &'a [Value]) -> Result<Run<'a>, Code> {
        let run = Run { raw: self.raw.as_ptr(), bound: PhantomData };
        for (index, value) in (1..).zip(params) {
            run.bind(index, value)?;
        }
        Ok(run)
    }
}

impl Drop for PreparedStatement {
    fn drop(&mut self) {
        // SAFETY: it was prepared, and nothing uses it any more. The error, if any, is that of its last run.
        unsafe { ffi::sqlite3_finalize(self.raw.as_ptr()) };
    }
}

impl Run<'_> {
    fn bind(&self, index: c_int, value: &Value) -> Result<(), Code> {
        // SAFETY: texts and blobs are as long as said, and live longer than this, which unbinds them.
        let code = unsafe {
            match value {
                Value::Null => ffi::sqlite3_bind_null(self.raw, index),
                Value::Integer(value) => ffi::sqlite3_bind_int64(self.raw, index, *value),
                Value::Real(value) => ffi::sqlite3_bind_double(self.raw, index, *value),
                Value::Text(text) => ffi::sqlite3_bind_text64(
                    self.raw,
                    index,
                    text.as_ptr().cast::<c_char>(),
                    text.len() as u64,
                    ffi::SQLITE_STATIC(),
                    ffi::SQLITE_UTF8 as u8,
                ),
                // The pointer of an empty one may be anything, but not null.
                Value::Blob(bytes) => ffi::sqlite3_bind_blob64(
                    self.raw,
                    index,
                    bytes.as_ptr().cast::<c_void>(),
                    bytes.len() as u64,
                    ffi::SQLITE_STATIC(),
                ),
                Value::TooLarge(_) => ffi::SQLITE_RANGE,
            }
        };
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(Code(code)) }
    }

    /// Goes to the next row; returns whether there is one.
    pub fn step(&mut self) -> Result<bool, Code> {
        // SAFETY: it was prepared.
        match unsafe { ffi::sqlite3_step(self.raw) } {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            code => Err(Code(code)),
        }
    }

    /// The number of columns. After a step it is that of the present schema.
    pub fn columns(&self) -> c_int {
        // SAFETY: it was prepared.
        unsafe { ffi::sqlite3_column_count(self.raw) }
    }

    /// The name of a column.
    pub fn name(&self, column: c_int) -> Result<&[u8], Code> {
        // SAFETY: SQLite checks the number; the text ends with a zero, and is there until the next step.
        unsafe {
            let name = ffi::sqlite3_column_name(self.raw, column);
            if name.is_null() { Err(Code(ffi::SQLITE_NOMEM)) } else { Ok(CStr::from_ptr(name).to_bytes()) }
        }
    }

    /// A value of the row.
    pub fn value(&self, column: c_int) -> Result<Column<'_>, Code> {
        let raw = self.raw;
        // SAFETY: there is a row, and SQLite checks the number. The borrow ends before the next step.
        unsafe {
            Ok(match ffi::sqlite3_column_type(raw, column) {
                ffi::SQLITE_INTEGER => Column::Integer(ffi::sqlite3_column_int64(raw, column)),
                ffi::SQLITE_FLOAT => Column::Real(ffi::sqlite3_column_double(raw, column)),
                ffi::SQLITE_TEXT => Column::Text(self.bytes(ffi::sqlite3_column_text(raw, column), column)?),
                ffi::SQLITE_BLOB => Column::Blob(self.bytes(ffi::sqlite3_column_blob(raw, column).cast(), column)?),
                _ => Column::Null,
            })
        }
    }

    /// # Safety
    ///
    /// `start` is that of the value of this column.
    unsafe fn bytes(&self, start: *const u8, column: c_int) -> Result<&[u8], Code> {
        // SAFETY: the length is that of the same value. An empty blob has no address; anything else has none when there
        // was no memory for it.
        unsafe {
            let length = usize::try_from(ffi::sqlite3_column_bytes(self.raw, column)).unwrap_or(0);
            match (start.is_null(), length) {
                (false, _) => Ok(slice::from_raw_parts(start, length)),
                (true, 0) if ffi::sqlite3_column_type(self.raw, column) == ffi::SQLITE_BLOB => Ok(&[]),
                (true, _) => Err(Code(ffi::SQLITE_NOMEM)),
            }
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // SAFETY: it was prepared. The error, if any, is that of the last step.
        unsafe {
            ffi::sqlite3_reset(self.raw);
            ffi::sqlite3_clear_bindings(self.raw);
        }
    }
}

/// What the connection says about its last error: the extended code, the number of the operating system, and the text.
pub fn last_error(connection: &Connection) -> (c_int, c_int, String) {
    // SAFETY: the connection is open, and the text is copied at once.
    unsafe {
        let handle = connection.handle();
        let text = CStr::from_ptr(ffi::sqlite3_errmsg(handle)).to_string_lossy().into_owned();
        (ffi::sqlite3_extended_errcode(handle), ffi::sqlite3_system_errno(handle), text)
    }
}
