//! The payloads of mongodb calls, as Extended JSON.

use super::mongo_options::FindOptions;
use crate::json_bridge::write::to_extended_json;
use serde::Serialize;

/// The payload of a call being written: an object whose members are JSON texts.
pub struct Payload(Result<Vec<u8>, String>);

impl Payload {
    /// An empty object.
    #[inline(never)]
    pub fn new() -> Self {
        Payload(Ok(vec![b'{']))
    }

    /// Adds a member.
    pub fn with<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Self {
        self.with_text(name, to_extended_json(value))
    }

    fn with_some<T: Serialize>(self, name: &str, value: Option<&T>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a member that is JSON text already, or why it is none.
    #[inline(never)]
    pub fn with_text(mut self, name: &str, text: Result<Vec<u8>, String>) -> Self {
        let written = self.0.as_mut().map(|out| text.map(|text| put(out, name, &text)));
        if let Ok(Err(why)) = written {
            self.0 = Err(format!("{name}: {why}"));
        }
        self
    }

    /// What all ways to find documents have in common.
    pub fn find<T: Serialize>(filter: &T, options: &FindOptions) -> Self {
        Payload::new().with("filter", filter).with_options(options)
    }

    #[inline(never)]
    fn with_options(self, options: &FindOptions) -> Self {
        let payload = match options.sort.is_empty() {
            true => self,
            false => {
                // An object in the order of the fields, which a map of serde_json might not keep.
                let mut sort = vec![b'{'];
                for (field, direction) in &options.sort {
                    put(&mut sort, field, direction.to_string().as_bytes());
                }
                sort.push(b'}');
                self.with_text("sort", Ok(sort))
            }
        };
        payload
            .with_some("projection", options.projection.as_ref())
            .with_some("skip", options.skip.as_ref())
            .with_some("limit", options.limit.as_ref())
    }

    /// The finished JSON text, or why there is none.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        self.0.map(|mut out| {
            out.push(b'}');
            out
        })
    }
}

/// Appends a member to an object.
fn put(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    serde_json::to_writer(&mut *out, name).expect("a string is always JSON");
    out.push(b':');
    out.extend_from_slice(value);
}

/// A command as one object.
#[inline(never)]
pub fn command(name: &str, value: &[u8], more: Vec<u8>) -> Result<Vec<u8>, String> {
    let mut out = vec![b'{'];
    put(&mut out, name, value);
    match more.strip_prefix(b"{") {
        Some(b"}") => out.push(b'}'),
        Some(members) => {
            out.push(b',');
            out.extend_from_slice(members);
        }
        None => return Err("the other members of a command must be an object".to_owned()),
    }
    Ok(out)
}
