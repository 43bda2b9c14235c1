//! A front: see the library.
fn main() {
    edge_front::run(None);
}
