//! An open file: runs statements, and writes their rows as JSON.
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use edge_service::MAX_BODY_BYTES;
use edge_service::backend::StatementResult;
use edge_service::error::CallError;
use edge_service::memory::{MemoryBudget, Share};
use edge_service::sql::{ResultText, json, miscounted};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, ffi};

use super::authorizer::{invalid, prepare, restrict};
use super::failure::Failure;
use super::limits::{is_aborted, wait_for_lock};
use super::prepared::StatementCache;
use super::statement::{Code, Column, PreparedStatement, Run};
use crate::sql::{self, Verb};

/// Instructions of SQLite between two looks whether a statement was aborted: some 10 µs.
const PROGRESS_INSTRUCTIONS: i32 = 1_000;
/// Size that a WAL keeps after its content was moved to the file.
const KEPT_WAL_BYTES: i64 = 16 * 1024 * 1024;
/// How long an answer waits for memory that others give back when they were read.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(1);
const MEMORY_PAUSE: Duration = Duration::from_millis(1);
/// What is written at once of a long text. The largest escape has six characters.
const PIECE_BYTES: usize = 48 * 1024;
const MAX_ESCAPE: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Creates a missing file.
    Create,
    Write,
    Read,
}

/// What a statement has answered, and the memory that is held for it.
pub type ResultWithMemory = (StatementResult, Option<Share>);

pub struct Database {
    /// Dropped before the connection.
    prepared: StatementCache,
    begin: PreparedStatement,
    commit: PreparedStatement,
    shares_snapshots: bool,
    has_snapshot: bool,
    access: Access,
    memory: Arc<MemoryBudget>,
    connection: Connection,
}

impl Database {
    /// `max_size_mb` is the maximum size of the file; a larger one does not grow.
    pub fn open(path: &Path, access: Access, max_size_mb: u64, memory: Arc<MemoryBudget>) -> Result<Self, Failure> {
        let flags = match access {
            Access::Create => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_handler(Some(wait_for_lock))?;
        connection.progress_handler(PROGRESS_INSTRUCTIONS, Some(is_aborted))?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_BODY_BYTES as i32)?;
        // Handlers cannot write to the tables within those of FTS and R-Tree, or to the schema.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.execute_batch("PRAGMA foreign_keys = ON")?;
        if access != Access::Read {
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")?;
            let page_bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
            let pages = max_size_mb * 1024 * 1024 / page_bytes.unsigned_abs().max(1);
            connection.execute_batch(&format!(
                "PRAGMA max_page_count = {pages}; PRAGMA journal_size_limit = {KEPT_WAL_BYTES}"
            ))?;
        }
        let failure = |code| Failure::of(&connection, code, false);
        restrict(&connection).map_err(failure)?;
        let own = |sql| PreparedStatement::prepare(&connection, sql, true)?.0.ok_or(Code(ffi::SQLITE_MISUSE));
        let (begin, commit) = (own("BEGIN").map_err(failure)?, own("COMMIT").map_err(failure)?);
        // Reads the file for the first time, unless what is above has.
        connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
        Ok(Self {
            prepared: StatementCache::default(),
            begin,
            commit,
            shares_snapshots: false,
            has_snapshot: false,
            access,
            memory,
            connection,
        })
    }

    pub fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit() && !self.has_snapshot
    }

    /// Until `end_snapshot`, SELECT statements that follow each other run in one read transaction: to lock the file
    /// costs as much as to read a row, and one lock serves them all.
    pub fn share_snapshots(&mut self) {
        self.shares_snapshots = true;
    }

    pub fn end_snapshot(&mut self) -> Result<(), Failure> {
        self.shares_snapshots = false;
        self.leave_snapshot()
    }

    /// Runs a statement of a handler.
    pub fn run(
        &mut self,
        statement: &sql::Statement,
        wants_rows: bool,
        in_transaction: bool,
    ) -> Result<ResultWithMemory, Failure> {
        let result = self.run_statement(statement, wants_rows, in_transaction);
        if result.as_ref().is_err_and(Failure::is_out_of_memory) {
            self.prepared.clear();
        }
        self.require_clean(in_transaction)?;
        result
    }

    /// Runs BEGIN, COMMIT or ROLLBACK.
    pub fn control(&mut self, sql: &str) -> Result<(), Failure> {
        self.leave_snapshot()?;
        Ok(self.connection.execute_batch(sql)?)
    }

    /// Moves the content of the WAL to the file, as far as no other program reads it. Returns whether it was moved
    /// completely, so that the WAL begins anew. Not possible in a transaction.
    pub fn checkpoint(&mut self) -> Result<bool, Failure> {
        self.leave_snapshot()?;
        if !self.connection.is_autocommit() {
            return Ok(false);
        }
        let figures = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (busy, in_wal, moved): (i64, i64, i64) =
            self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], figures)?;
        Ok(busy == 0 && in_wal == moved)
    }

    pub fn version(&self) -> Result<String, Failure> {
        Ok(self.connection.query_row("SELECT sqlite_version()", [], |row| row.get(0))?)
    }

    /// Rolls back a transaction that a statement has left open despite the checks.
    fn require_clean(&mut self, in_transaction: bool) -> Result<(), Failure> {
        if in_transaction || !self.is_in_transaction() {
            return Ok(());
        }
        self.connection.execute_batch("ROLLBACK")?;
        let text = "the statement has left a transaction open, which was rolled back: \
             begin, commit and rollback are operations of their own";
        Err(invalid(text.to_owned()))
    }

    fn run_statement(
        &mut self,
        given: &sql::Statement,
        wants_rows: bool,
        in_transaction: bool,
    ) -> Result<ResultWithMemory, Failure> {
        if given.verb != Verb::Select {
            self.leave_snapshot()?;
        } else if self.shares_snapshots {
            self.enter_snapshot()?;
        }
        let Self { prepared, connection, memory, .. } = self;
        let mut once = None;
        let statement = match prepared.get_mut(&given.sql) {
            Some(statement) => statement,
            None => {
                let (statement, needs_transaction) = prepare(connection, given, in_transaction)?;
                if needs_transaction { once.insert(statement) } else { prepared.add(&given.sql, statement, &mut once) }
            }
        };
        if statement.parameters() != given.param_count {
            return Err(invalid(miscounted(statement.parameters() as f64, given.param_count)));
        }
        let only_reads = statement.only_reads();
        let before = if only_reads { 0 } else { connection.total_changes() };
        let failure = |code| Failure::of(connection, code, only_reads);
        let mut run = statement.run(&given.params).map_err(failure)?;
        let mut has_row = run.step().map_err(failure)?;
        // The columns are read after a step: a changed schema may have changed them.
        let mut text = if wants_rows { Some(result_of(&run, memory).map_err(failure)?) } else { None };
        while has_row {
            if let Some(text) = &mut text {
                write_row(&run, text, failure)?;
            }
            has_row = run.step().map_err(failure)?;
        }
        drop(run);
        // What the connection tells of changes and ids is that of the last statement that has changed rows.
        let has_changed = !only_reads && connection.total_changes() != before;
        let rows = if has_changed { connection.changes() } else { 0 };
        let last_insert_id = (given.verb == Verb::Insert && rows > 0).then(|| connection.last_insert_rowid());
        Ok(match text {
            Some(text) => {
                let (json, share) = text.finish(rows, last_insert_id)?;
                (StatementResult::Rows(json), Some(share))
            }
            None => (StatementResult::Affected { rows, last_insert_id }, None),
        })
    }

    fn enter_snapshot(&mut self) -> Result<(), Failure> {
        if self.has_snapshot || !self.connection.is_autocommit() {
            return Ok(());
        }
        control(&mut self.begin).map_err(|code| Failure::of(&self.connection, code, true))?;
        self.has_snapshot = true;
        Ok(())
    }

    fn leave_snapshot(&mut self) -> Result<(), Failure> {
        // Some errors have ended it.
        if !std::mem::take(&mut self.has_snapshot) || self.connection.is_autocommit() {
            return Ok(());
        }
        control(&mut self.commit).map_err(|code| Failure::of(&self.connection, code, true))
    }
}

/// Checkpoints the WAL first: closing does so only where no other program has the file.
impl Drop for Database {
    fn drop(&mut self) {
        if self.access != Access::Read {
            // What cannot be moved now is moved when the file is opened next.
            let _ = self.connection.busy_handler(None);
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }
}

fn control(statement: &mut PreparedStatement) -> Result<(), Code> {
    statement.run(&[])?.step().map(drop)
}

fn result_of(run: &Run, memory: &Arc<MemoryBudget>) -> Result<ResultText, Code> {
    let names: Result<Vec<_>, Code> = (0..run.columns()).map(|column| run.name(column)).collect();
    Ok(ResultText::new(&ResultText::head(names?), memory))
}

fn write_row(run: &Run, text: &mut ResultText, failure: impl Fn(Code) -> Failure) -> Result<(), Failure> {
    text.begin_row();
    for column in 0..run.columns() {
        let value = run.value(column).map_err(&failure)?;
        let out = text.values();
        if column > 0 {
            out.push(b',');
        }
        match value {
            Column::Null => out.extend_from_slice(b"null"),
            Column::Integer(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Column::Real(value) => sql::write_real(value, out),
            Column::Text(value) => write_text(value, text)?,
            Column::Blob(value) => write_blob(value, text)?,
        }
        text.account()?;
    }
    text.end_row();
    Ok(())
}

/// What another program has stored may have U+0000, and ends there.
fn write_text(value: &[u8], text: &mut ResultText) -> Result<(), CallError> {
    let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
    let mut rest = &value[..end];
    if rest.len() <= PIECE_BYTES {
        make_room(text, MAX_ESCAPE * rest.len() + 2)?;
        json::write_escaped(rest, text.values());
        return Ok(());
    }
    text.values().push(b'"');
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece_end(rest));
        make_room(text, MAX_ESCAPE * piece.len() + 2)?;
        json::write_escaped_content(piece, text.values());
        text.account()?;
        rest = after;
    }
    text.values().push(b'"');
    Ok(())
}

/// Where the first piece of a long text ends: between two characters.
fn piece_end(text: &[u8]) -> usize {
    let is_inside = |&at: &usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (PIECE_BYTES..PIECE_BYTES + 4).find(|at| !is_inside(at)).unwrap_or(PIECE_BYTES).min(text.len())
}

fn write_blob(value: &[u8], text: &mut ResultText) -> Result<(), CallError> {
    let length = value.len().div_ceil(3) * 4;
    make_room(text, length + 2)?;
    let out = text.values();
    out.push(b'"');
    let start = out.len();
    out.resize(start + length, 0);
    // It has the length of what is written.
    let written = STANDARD.encode_slice(value, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
    out.push(b'"');
    Ok(())
}

/// Waits a while when there is no memory: others hold it until their answers are read.
fn make_room(text: &mut ResultText, bytes: usize) -> Result<(), CallError> {
    let mut since = None;
    text.make_room(bytes, || {
        thread::sleep(MEMORY_PAUSE);
        since.get_or_insert_with(Instant::now).elapsed() < MEMORY_TIMEOUT && !is_aborted()
    })
}

#[cfg(test)]
mod tests;
