//! The parts of a request's head that parameters are in, for a check on another thread.
use super::parameters::Sources;
use super::problems::Problems;

/// What the memory of a part takes besides its bytes.
const PART_BYTES: usize = 64;

pub struct KeptHead {
    path_and_query: Box<str>,
    headers: Vec<(Box<str>, Box<[u8]>)>,
    path: Vec<(Box<str>, Box<str>)>,
}

impl KeptHead {
    /// `path`: names and values of its parameters.
    pub fn of(path_and_query: &str, headers: &[httparse::Header<'_>], path: &[(&str, &str)]) -> Self {
        Self {
            path_and_query: path_and_query.into(),
            headers: headers.iter().map(|header| (header.name.into(), header.value.into())).collect(),
            path: path.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        }
    }

    /// The bytes of its parts as they were sent.
    pub fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.path_and_query.len() + headers
    }

    /// Bytes of memory.
    pub fn room(&self) -> usize {
        let path: usize = self.path.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.bytes() + path + (self.headers.len() + self.path.len()) * PART_BYTES
    }

    pub fn with_sources(&self, problems: &mut Problems, check: impl FnOnce(&Sources<'_>, &mut Problems)) {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| httparse::Header { name, value }).collect();
        let path: Vec<_> = self.path.iter().map(|(name, value)| (&**name, &**value)).collect();
        check(&Sources::new(&self.path_and_query, &headers, &path, problems), problems);
    }
}
