//! Statements that are kept because handlers repeat them.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::statement::PreparedStatement;

/// The oldest are evicted when there are more, or they hold more.
const MAX_STATEMENTS: usize = 500;
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Larger ones are not kept.
const MAX_STATEMENT_BYTES: usize = 1024 * 1024;
const MAX_SQL_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub struct StatementCache {
    statements: HashMap<Arc<str>, PreparedStatement>,
    /// The texts, oldest first, and the memory that each statement holds, bytes.
    order: VecDeque<(Arc<str>, usize)>,
    bytes: usize,
}

impl StatementCache {
    /// Whether a statement may be kept, by its text.
    pub fn keeps(sql: &str) -> bool {
        sql.len() <= MAX_SQL_BYTES
    }

    pub fn get_mut(&mut self, sql: &str) -> Option<&mut PreparedStatement> {
        self.statements.get_mut(sql)
    }

    /// Keeps a new statement, unless it is large; then it stays in `once`.
    pub fn add<'a>(
        &'a mut self,
        sql: &Arc<str>,
        statement: PreparedStatement,
        once: &'a mut Option<PreparedStatement>,
    ) -> &'a mut PreparedStatement {
        let bytes = statement.memory_bytes() + sql.len();
        if !Self::keeps(sql) || bytes > MAX_STATEMENT_BYTES {
            return once.insert(statement);
        }
        while self.order.len() >= MAX_STATEMENTS || self.bytes + bytes > MAX_BYTES {
            let Some((oldest, freed)) = self.order.pop_front() else { break };
            self.statements.remove(&oldest);
            self.bytes -= freed;
        }
        self.order.push_back((sql.clone(), bytes));
        self.bytes += bytes;
        self.statements.entry(sql.clone()).or_insert(statement)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
