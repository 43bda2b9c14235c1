//! The process of one sqlite service.
mod db;
mod link;
mod service;
mod sql;

fn main() {
    edge_service::run::<service::Sqlite>();
}
