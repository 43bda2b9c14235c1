//! The process of one PostgreSQL service.
mod pg;
mod sql;

fn main() {
    edge_service::run::<pg::Postgres>();
}
