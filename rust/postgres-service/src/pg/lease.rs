//! A connection of the pool, leased to a call or a transaction.
use std::rc::Rc;
use std::sync::Arc;

use edge_service::backend::StatementResult;

use super::failure::Failure;
use super::pool::{Pool, PooledConnection};
use super::rows::{Columns, PendingRows, ResultText, values};
use super::statement::{Sink, StatementAnswer};
use super::types::{CATALOG, CatalogRow, Encoder};

use crate::sql::{Param, Statement};

/// Returns its connection to the pool when it is dropped, or closes it when its state has changed. A statement that has
/// not ended is cancelled on the server.
pub struct Lease {
    pool: Rc<Pool>,
    connection: Option<PooledConnection>,
}

impl Lease {
    pub fn new(pool: Rc<Pool>, connection: PooledConnection) -> Self {
        Self { pool, connection: Some(connection) }
    }

    pub async fn run(&mut self, statement: &Statement, wants_rows: bool) -> Result<StatementResult, Failure> {
        let Statement { sql, params } = statement;
        let sink = if wants_rows { Sink::Json } else { Sink::Ignore };
        let answered = match self.send(sql, params, sink).await {
            // The error has removed the prepared statement, so this prepares it again.
            Err(failure) if failure.is_stale_plan() && self.is_clean() => self.send(sql, params, sink).await,
            answered => answered,
        }?;
        let affected = answered.rows_affected();
        if !wants_rows {
            return Ok(StatementResult::Affected { rows: affected, last_insert_id: None });
        }
        let text = match (answered.text, &answered.columns) {
            (Some(text), _) => text,
            (None, None) => ResultText::new(None, &self.pool.common().memory),
            (None, Some(columns)) => self.late_text(columns, &answered.pending).await?,
        };
        Ok(StatementResult::Rows(text.finish(affected)?))
    }

    /// Runs transaction control. Returns whether the server has committed.
    pub async fn control(&mut self, sql: &str) -> Result<bool, Failure> {
        Ok(self.send(&sql.into(), &[], Sink::Ignore).await?.is_commit())
    }

    /// The first value of the first row, as text.
    pub async fn value(&mut self, sql: &str) -> Result<Option<String>, Failure> {
        let answered = self.send(&sql.into(), &[], Sink::Keep).await?;
        let row = answered.pending.iter().next().and_then(values);
        let value = row.and_then(|row| row.first().copied().flatten().map(<[u8]>::to_vec));
        Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
    }

    async fn send(&mut self, sql: &Arc<str>, params: &[Param], sink: Sink) -> Result<StatementAnswer, Failure> {
        match &mut self.connection {
            Some(connection) => connection.run(sql, params, sink).await,
            None => Err(Failure::Closed),
        }
    }

    /// Whether its connection may be used for another call.
    fn is_clean(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_clean())
    }

    /// Whether another statement can be sent, in the same transaction.
    pub fn is_usable(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| !connection.is_busy() && !connection.is_broken())
    }

    /// Looks unknown types up, in a session without a failed transaction.
    async fn late_text(&mut self, columns: &Columns, rows: &PendingRows) -> Result<ResultText, Failure> {
        let unknown = columns.unknown(&self.pool.common().types);
        if !unknown.is_empty() {
            self.learn(&unknown).await?;
        }
        let types = &self.pool.common().types;
        let late: Vec<_>;
        let encoders = match columns.encoders(types) {
            Some(encoders) => encoders,
            None => {
                late = columns.oids.iter().map(|oid| types.encoder(*oid).unwrap_or(Encoder::Escaped)).collect();
                &late
            }
        };
        let mut text = ResultText::new(Some(columns), &self.pool.common().memory);
        for row in rows.iter() {
            text.add(row, encoders)?;
        }
        Ok(text)
    }

    async fn learn(&mut self, oids: &[u32]) -> Result<(), Failure> {
        let list = oids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let params = [Param::Text(format!("{{{list}}}"))];
        let answered = self.send(&CATALOG.into(), &params, Sink::Keep).await?;
        let rows: Option<Vec<CatalogRow>> = answered.pending.iter().map(catalog_row).collect();
        self.pool.common().types.learn(oids, &rows.ok_or(Failure::Garbled)?);
        Ok(())
    }
}

fn catalog_row(body: &[u8]) -> Option<CatalogRow> {
    let number = |value: &[u8]| std::str::from_utf8(value).ok()?.parse().ok();
    match values(body)?[..] {
        [Some(oid), element, delimiter] => Some(CatalogRow {
            oid: number(oid)?,
            element: element.and_then(number),
            delimiter: delimiter.and_then(|text| text.first().copied()).unwrap_or(b','),
        }),
        _ => None,
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.give_back(connection);
        }
    }
}
