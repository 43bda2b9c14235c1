//! The prepared statements of a connection.
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use super::messages;
use super::rows::Columns;

/// Maximum number of prepared statements per connection; the oldest is evicted.
const PREPARED: usize = 200;
/// Longer statements are not kept, neither here nor on the server.
const MAX_SQL_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub struct PreparedStatements {
    by_sql: HashMap<Arc<str>, NamedStatement>,
    /// The oldest first.
    order: VecDeque<Arc<str>>,
    /// Names to close together with the next statement.
    obsolete: Vec<Arc<str>>,
    names: u64,
}

struct NamedStatement {
    name: Arc<str>,
    /// `None` for a statement without rows.
    columns: Option<Rc<Columns>>,
}

/// How a statement is sent.
pub struct Use {
    /// Empty when it is not kept.
    pub name: Arc<str>,
    /// Whether it must be prepared.
    pub is_new: bool,
    /// The columns of a statement that has been prepared.
    pub columns: Option<Rc<Columns>>,
}

impl PreparedStatements {
    /// Closes those that are obsolete, and finds the statement or a name for it.
    pub fn begin(&mut self, sql: &Arc<str>, out: &mut Vec<u8>) -> Use {
        for name in self.obsolete.drain(..) {
            messages::close(out, &name);
        }
        if let Some(NamedStatement { name, columns }) = self.by_sql.get(sql) {
            return Use { name: name.clone(), is_new: false, columns: columns.clone() };
        }
        if sql.len() > MAX_SQL_BYTES {
            return Use { name: "".into(), is_new: true, columns: None };
        }
        self.names += 1;
        Use { name: format!("s{}", self.names).into(), is_new: true, columns: None }
    }

    /// Keeps a new statement that was answered.
    pub fn add(&mut self, sql: &Arc<str>, name: Arc<str>, columns: Option<Rc<Columns>>) {
        if name.is_empty() {
            return;
        }
        if columns.as_ref().is_some_and(|columns| !columns.is_small()) {
            self.obsolete.push(name);
            return;
        }
        if self.order.len() >= PREPARED {
            if let Some(oldest) = self.order.pop_front() {
                self.forget(&oldest);
            }
        }
        self.order.push_back(sql.clone());
        self.by_sql.insert(sql.clone(), NamedStatement { name, columns });
    }

    /// Forgets a statement that has failed, if it is new or stale. A new one may or may not have been prepared.
    pub fn failed(&mut self, sql: &Arc<str>, name: Arc<str>, is_new: bool, is_stale: bool) {
        if is_new && !name.is_empty() {
            self.obsolete.push(name);
        } else if is_stale {
            self.order.retain(|known| known != sql);
            self.forget(sql);
        }
    }

    fn forget(&mut self, sql: &Arc<str>) {
        if let Some(prepared) = self.by_sql.remove(sql) {
            self.obsolete.push(prepared.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_limited_number_and_closes_the_oldest() {
        let mut statements = PreparedStatements::default();
        let mut out = Vec::new();
        for number in 0..=PREPARED {
            let sql: Arc<str> = format!("SELECT {number}").into();
            let used = statements.begin(&sql, &mut out);
            assert!(used.is_new);
            statements.add(&sql, used.name, None);
        }
        assert!(out.is_empty());
        assert!(statements.begin(&"SELECT 0".into(), &mut out).is_new);
        assert_eq!(out, b"C\0\0\0\x08Ss1\0");
        assert!(!statements.begin(&"SELECT 1".into(), &mut out).is_new);
        statements.failed(&"SELECT 1".into(), "s2".into(), false, true);
        assert!(statements.begin(&"SELECT 1".into(), &mut out).is_new);
    }
}
