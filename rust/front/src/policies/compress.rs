//! Compresses answers that are long enough, and not compressed yet, for clients that accept it.
use std::io::Write;

use super::compiled::CompiledCompress;
use crate::request::Head;

const DEFAULT_MIN_BYTES: usize = 1024;
/// Compressed at a time: other connections of the thread do not wait for all of a long body.
const STEP_BYTES: usize = 64 * 1024;
const BROTLI_QUALITY: u32 = 4;
const BROTLI_WINDOW: u32 = 20;
const GZIP_LEVEL: u32 = 4;
const ZSTD_LEVEL: i32 = 3;
/// Types beside `text/*` that are worth it.
const TYPES: [&str; 9] = [
    "application/json",
    "application/javascript",
    "application/xml",
    "application/x-ndjson",
    "application/x-www-form-urlencoded",
    "application/wasm",
    "application/graphql-response+json",
    "image/svg+xml",
    "application/yaml",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Brotli,
    Zstd,
    Gzip,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }
}

#[derive(Debug)]
pub struct Compress {
    min_bytes: usize,
    encodings: Vec<Encoding>,
}

impl Compress {
    pub fn new(compiled: CompiledCompress) -> Self {
        let algorithms = compiled.algorithms;
        let is_wanted = |encoding: &Encoding| {
            algorithms.as_ref().is_none_or(|names| names.iter().any(|name| name == encoding.name()))
        };
        let all = [Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];
        Self {
            min_bytes: compiled.min_bytes.unwrap_or(DEFAULT_MIN_BYTES),
            encodings: all.into_iter().filter(is_wanted).collect(),
        }
    }

    /// The one that the client likes best, and of several the first of ours.
    pub fn encoding_for(&self, head: &Head<'_, '_>) -> Option<Encoding> {
        let accepted = head.single_text_header("accept-encoding")?;
        let weight = |encoding: Encoding| weight_of(accepted, encoding.name());
        let mut best = None;
        for &encoding in &self.encodings {
            let weight = weight(encoding);
            if weight > best.map_or(0, |(_, weight)| weight) {
                best = Some((encoding, weight));
            }
        }
        best.map(|(encoding, _)| encoding)
    }

    pub fn suits(&self, status: u16, lines: &[u8], length: usize) -> bool {
        if length < self.min_bytes || status == 206 || status == 204 || status == 304 {
            return false;
        }
        let mut is_text = false;
        for (name, value) in lines.split(|&byte| byte == b'\n').filter_map(named) {
            match &*name {
                "content-encoding" | "content-range" => return false,
                // They are of the bytes as they are sent (RFC 9530).
                "content-digest" | "repr-digest" | "digest" => return false,
                "cache-control" if value.contains("no-transform") => return false,
                "content-type" => is_text = is_compressible(&value),
                _ => {}
            }
        }
        is_text
    }
}

fn named(line: &[u8]) -> Option<(String, String)> {
    let line = std::str::from_utf8(line).ok()?;
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim().to_ascii_lowercase()))
}

fn is_compressible(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    // Events are sent one by one.
    media_type.starts_with("text/")
        || TYPES.contains(&media_type)
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
}

/// RFC 9110, section 12.5.3, in thousandths.
fn weight_of(accepted: &str, name: &str) -> u32 {
    let mut any = 0;
    for part in accepted.split(',') {
        let mut parameters = part.split(';').map(str::trim);
        let coding = parameters.next().unwrap_or_default();
        let quality = parameters.find_map(|parameter| parameter.strip_prefix("q=").or(parameter.strip_prefix("Q=")));
        let weight = quality.map_or(1000.0, |text| text.parse::<f32>().unwrap_or(0.0) * 1000.0) as u32;
        if coding.eq_ignore_ascii_case(name) || (name == "gzip" && coding.eq_ignore_ascii_case("x-gzip")) {
            return weight;
        }
        if coding == "*" {
            any = weight;
        }
    }
    any
}

/// The compressed body. `None` when it does not get shorter, or there is no memory.
pub async fn compressed(body: &[u8], encoding: Encoding) -> Option<Vec<u8>> {
    let room = Vec::with_capacity(body.len() / 4);
    let out = match encoding {
        Encoding::Brotli => {
            let mut encoder = brotli::CompressorWriter::new(room, 4096, BROTLI_QUALITY, BROTLI_WINDOW);
            write(&mut encoder, body).await?;
            encoder.into_inner()
        }
        Encoding::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(room, ZSTD_LEVEL).ok()?;
            write(&mut encoder, body).await?;
            encoder.finish().ok()?
        }
        Encoding::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(room, flate2::Compression::new(GZIP_LEVEL));
            write(&mut encoder, body).await?;
            encoder.finish().ok()?
        }
    };
    (out.len() < body.len()).then_some(out)
}

async fn write(encoder: &mut impl Write, body: &[u8]) -> Option<()> {
    for (at, part) in body.chunks(STEP_BYTES).enumerate() {
        if at > 0 {
            tokio::task::yield_now().await;
        }
        encoder.write_all(part).ok()?;
    }
    Some(())
}

/// Changes the header lines for a compressed body.
pub fn lines_for_encoding(lines: &[u8], encoding: Encoding) -> Vec<u8> {
    let mut changed = Vec::with_capacity(lines.len() + 32);
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        // The bytes are others: only a weak tag is right for both.
        let is_tag = line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"etag:"));
        let value = if is_tag { line[5..].trim_ascii_start() } else { b"" };
        if is_tag && !value.starts_with(b"W/") {
            changed.extend_from_slice(b"ETag: W/");
            changed.extend_from_slice(value);
        } else {
            changed.extend_from_slice(line);
        }
    }
    changed.extend_from_slice(format!("Content-Encoding: {}\r\n", encoding.name()).as_bytes());
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_the_coding_that_clients_prefer() {
        assert_eq!(weight_of("gzip, br;q=0.5", "br"), 500);
        assert_eq!(weight_of("gzip;q=0, *", "gzip"), 0);
        assert_eq!(weight_of("gzip;q=0, *", "zstd"), 1000);
        assert_eq!(weight_of("identity", "zstd"), 0);
    }

    #[test]
    fn strong_tags_become_weak() {
        let lines = lines_for_encoding(b"ETag: \"a\"\r\nX: y\r\n", Encoding::Gzip);
        assert_eq!(lines, b"ETag: W/\"a\"\r\nX: y\r\nContent-Encoding: gzip\r\n");
    }
}
