//! The thread that has the file: answers the requests of a batch one after the other.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use edge_service::backend::StatementResult;
use edge_service::error::{CallError, Kind};
use edge_service::memory::MemoryBudget;

use super::{FinishedWork, LinkState, Place, Request, Work, closed, lock};
use crate::db::{Access, Database, Failure, FileLimits, ResultWithMemory, abortable, give_back_memory, resolve};

/// Answers are sent in batches; the longest delay of one by the statements after it, and the bytes of a batch.
const FLUSH_AFTER: Duration = Duration::from_millis(20);
const FLUSH_BYTES: usize = 4 * 1024 * 1024;

const NOTHING: ResultWithMemory = (StatementResult::Affected { rows: 0, last_insert_id: None }, None);

/// The file of a service, as it is configured.
#[derive(Clone)]
pub struct File {
    pub path: String,
    pub creates: bool,
    pub max_size_mb: u64,
    /// It must be in one of these; a relative path refers to the first.
    pub folders: Vec<PathBuf>,
    /// The memory for answers.
    pub memory: Arc<MemoryBudget>,
    /// What this process may use, MiB.
    pub memory_mb: usize,
}

pub struct Worker {
    file: File,
    shared: Arc<LinkState>,
    opened: Option<OpenFile>,
}

/// The file while it is open.
struct OpenFile {
    path: PathBuf,
    limits: FileLimits,
    database: Database,
    /// Read-only, for reads during a transaction.
    reader: Option<Database>,
    has_full_wal: bool,
}

impl Worker {
    pub fn new(file: File, shared: Arc<LinkState>) -> Self {
        Self { file, shared, opened: None }
    }

    /// Works until the file is closed.
    pub fn work(mut self) {
        while let Some(batch) = self.next_batch() {
            self.answer_all(batch);
        }
        self.opened = None;
        self.shared.inbox().has_ended = true;
        self.shared.has_answers.notify_one();
    }

    fn next_batch(&self) -> Option<Vec<Request>> {
        let mut inbox = self.shared.inbox();
        loop {
            if inbox.is_closed {
                return None;
            }
            if !inbox.requests.is_empty() {
                return Some(std::mem::take(&mut inbox.requests));
            }
            inbox = self.shared.has_requests.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn answer_all(&mut self, batch: Vec<Request>) {
        if let (Some(opened), true) = (&mut self.opened, batch.len() > 1) {
            opened.database.share_snapshots();
        }
        let mut answers = Vec::with_capacity(batch.len());
        let mut bytes = 0;
        let mut since = Instant::now();
        for Request { number, ticket, work } in batch {
            let answer = if ticket.begin() {
                let answer = abortable(ticket.clone(), || self.answer(work));
                ticket.end();
                answer
            } else {
                // Nobody waits for it.
                Err(CallError::new(Kind::Deadline, "the statement was cancelled"))
            };
            let Some(number) = number else { continue };
            let (outcome, share) =
                answer.map_or_else(|error| (Err(error), None), |(answer, share)| (Ok(answer), share));
            if let Ok(StatementResult::Rows(json)) = &outcome {
                bytes += json.len();
            }
            answers.push(FinishedWork { number, outcome, _share: share });
            if bytes > FLUSH_BYTES || since.elapsed() >= FLUSH_AFTER {
                self.send(&mut answers);
                bytes = 0;
                since = Instant::now();
            }
        }
        if let Some(opened) = &mut self.opened {
            // It was a transaction of reads: an error has no consequence.
            let _ = opened.database.end_snapshot();
        }
        if !answers.is_empty() {
            self.send(&mut answers);
        }
        give_back_memory();
    }

    fn send(&self, answers: &mut Vec<FinishedWork>) {
        lock(&self.shared.answers).append(answers);
        self.shared.has_answers.notify_one();
    }

    fn answer(&mut self, work: Work) -> Result<ResultWithMemory, CallError> {
        if let Work::Open = work {
            self.opened = Some(OpenFile::open(&self.file)?);
            return Ok(NOTHING);
        }
        let opened = self.opened.as_mut().ok_or_else(closed)?;
        opened.answer(&self.file, work).map_err(|failure| {
            opened.has_full_wal |= opened.limits.is_wal_full();
            failure.into_call_error(&opened.limits, self.file.memory_mb)
        })
    }
}

impl OpenFile {
    fn open(file: &File) -> Result<Self, CallError> {
        let path = resolve(&file.path, file.creates, &file.folders)?;
        let limits = FileLimits::new(&path, file.max_size_mb);
        limits.enforce();
        let access = if file.creates { Access::Create } else { Access::Write };
        match Database::open(&path, access, file.max_size_mb, file.memory.clone()) {
            Ok(database) => Ok(Self { path, limits, database, reader: None, has_full_wal: false }),
            Err(failure) => {
                let reason = failure.into_call_error(&limits, file.memory_mb).message;
                let text = format!("{} cannot be opened: {reason}", path.display());
                Err(CallError::new(Kind::Unavailable, text))
            }
        }
    }

    fn answer(&mut self, file: &File, work: Work) -> Result<ResultWithMemory, Failure> {
        // Otherwise only a commit does it, and nothing can be committed.
        if self.has_full_wal {
            self.has_full_wal = !self.database.checkpoint()?;
        }
        match work {
            Work::Open => Ok(NOTHING),
            Work::Test => {
                Ok((StatementResult::Rows(format!("SQLite {}", self.database.version()?).into_bytes()), None))
            }
            Work::Run { statement, wants_rows, place } => match place {
                Place::Outside => self.database.run(&statement, wants_rows, false),
                Place::Beside => self.reader(file)?.run(&statement, wants_rows, false),
                Place::Inside => {
                    self.require_transaction()?;
                    self.database.run(&statement, wants_rows, true)
                }
            },
            Work::Begin => self.control("BEGIN IMMEDIATE"),
            Work::Commit => {
                self.require_transaction()?;
                self.control("COMMIT")
            }
            Work::Rollback if self.database.is_in_transaction() => self.control("ROLLBACK"),
            Work::Rollback => Ok(NOTHING),
        }
    }

    fn control(&mut self, sql: &str) -> Result<ResultWithMemory, Failure> {
        self.database.control(sql)?;
        Ok(NOTHING)
    }

    fn reader(&mut self, file: &File) -> Result<&mut Database, Failure> {
        let opened = match self.reader.take() {
            Some(reader) => reader,
            None => Database::open(&self.path, Access::Read, file.max_size_mb, file.memory.clone())?,
        };
        Ok(self.reader.insert(opened))
    }

    /// Some errors, like a full disk, roll the transaction back.
    fn require_transaction(&self) -> Result<(), CallError> {
        if self.database.is_in_transaction() {
            return Ok(());
        }
        let text = "the transaction was rolled back, because a statement in it has failed";
        Err(CallError::new(Kind::Backend, text))
    }
}
