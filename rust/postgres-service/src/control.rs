//! What the actor host asks of this process, over the channel that Node opens to a child process.
pub fn run() {
    todo!()
}
