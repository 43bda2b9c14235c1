//! The answer to a statement, while it is arriving.
use std::rc::Rc;
use std::sync::Arc;

use edge_service::error::{CallError, Kind};
use edge_service::memory::MemoryBudget;
use edge_service::sql::too_large;

use super::connection::Common;
use super::failure::{Failure, MAX_RECEIVED_BYTES};
use super::messages::{server_error, unexpected};
use super::rows::{Columns, PendingRows, ResultText, rows_affected};
use super::types::Types;

/// What becomes of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    Ignore,
    /// They become JSON, unless they have types that must be looked up first.
    Json,
    /// They are kept as they came.
    Keep,
}

pub struct Progress {
    sink: Sink,
    columns: Option<Rc<Columns>>,
    text: Option<ResultText>,
    pending: PendingRows,
    memory: Arc<MemoryBudget>,
    /// The command tag, e.g. `COMMIT`, or `ROLLBACK` when a failed transaction was committed.
    tag: Vec<u8>,
    received: usize,
    /// What the server has answered.
    pub failure: Option<Failure>,
}

/// The answer to a statement.
pub struct StatementAnswer {
    pub columns: Option<Rc<Columns>>,
    /// When all types of the rows were known.
    pub text: Option<ResultText>,
    pub pending: PendingRows,
    tag: Vec<u8>,
}

impl StatementAnswer {
    pub fn rows_affected(&self) -> u64 {
        rows_affected(&self.tag, self.columns.is_some())
    }

    pub fn is_commit(&self) -> bool {
        self.tag == b"COMMIT"
    }
}

impl Progress {
    /// `columns` are those of a statement that was prepared before.
    pub fn new(sink: Sink, columns: Option<Rc<Columns>>, common: &Common) -> Self {
        let mut progress = Self {
            sink,
            columns: None,
            text: None,
            pending: PendingRows::new(&common.memory),
            memory: common.memory.clone(),
            tag: Vec::new(),
            received: 0,
            failure: None,
        };
        if let Some(columns) = columns {
            progress.begin(columns, &common.types);
        }
        progress
    }

    pub fn columns(&self) -> Option<Rc<Columns>> {
        self.columns.clone()
    }

    pub fn received(&mut self, bytes: usize) -> Result<(), Failure> {
        self.received = self.received.saturating_add(bytes);
        if self.received > MAX_RECEIVED_BYTES { Err(Failure::Call(too_large())) } else { Ok(()) }
    }

    pub fn on_message(&mut self, tag: u8, body: &[u8], types: &Types) -> Result<(), Failure> {
        if self.failure.is_some() {
            // Only the end of the statement is still to come.
            return if matches!(tag, b'T' | b'D' | b'C') { Err(Failure::Garbled) } else { Ok(()) };
        }
        match tag {
            b'D' => self.on_row(body, types),
            b'T' => {
                let columns = Columns::read(body).ok_or(Failure::Garbled)?;
                self.begin(Rc::new(columns), types);
                Ok(())
            }
            b'C' => {
                let (end, tag) = body.split_last().ok_or(Failure::Garbled)?;
                if *end != 0 {
                    return Err(Failure::Garbled);
                }
                self.tag.clear();
                self.tag.extend_from_slice(&tag[..tag.len().min(64)]);
                Ok(())
            }
            b'E' => match server_error(body) {
                // Nothing more will come.
                Failure::Server(error) if !error.ends_connection() => {
                    self.failure = Some(Failure::Server(error));
                    Ok(())
                }
                failure => Err(failure),
            },
            b's' => Err(refused("the server has sent a partial result without request")),
            b'G' => Err(refused("the server expects COPY data, which is not supported")),
            b'd' => Err(refused("the server has sent data outside of rows")),
            b'1' | b'I' => Ok(()),
            _ => unexpected(tag, body).map_or(Ok(()), Err),
        }
    }

    pub fn finish(self) -> StatementAnswer {
        let Self { columns, text, pending, tag, .. } = self;
        StatementAnswer { columns, text, pending, tag }
    }

    fn begin(&mut self, columns: Rc<Columns>, types: &Types) {
        self.text = match self.sink {
            Sink::Json if columns.encoders(types).is_some() => Some(ResultText::new(Some(&columns), &self.memory)),
            _ => None,
        };
        self.columns = Some(columns);
    }

    fn on_row(&mut self, body: &[u8], types: &Types) -> Result<(), Failure> {
        if self.sink == Sink::Ignore {
            return Ok(());
        }
        let encoders = self.columns.as_ref().and_then(|columns| columns.encoders(types));
        match (&mut self.text, encoders) {
            (Some(text), Some(encoders)) => text.add(body, encoders),
            _ => {
                self.pending.add(body)?;
                // Once more, because they are kept until their types are known.
                self.received(body.len())
            }
        }
    }
}

fn refused(message: &str) -> Failure {
    Failure::Call(CallError::new(Kind::Backend, message))
}
