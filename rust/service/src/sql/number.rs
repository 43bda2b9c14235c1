//! Numbers as JavaScript prints them, which is what the server has been sent since there are services.

/// The text of a number in JSON, read as a double.
pub fn printed(json: &str) -> String {
    // The common case: a double has this many digits exactly, and JSON knows no superfluous zeros.
    let digits = json.strip_prefix('-').unwrap_or(json);
    if digits.len() <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit()) && json != "-0" {
        return json.to_owned();
    }
    // JSON is a subset of what is parsed here.
    json.parse().map_or_else(|_| json.to_owned(), print)
}

/// Writes what `Number.prototype.toString` does. The standard library rounds some of the shortest digits the other way.
pub fn print(value: f64) -> String {
    ryu_js::Buffer::new().format(value).to_owned()
}
