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

/// As `Number.prototype.toString`: the shortest digits that are read as the same number.
pub fn print(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let count = digits.len() as i32;
    // The number is 0.digits times ten to the power of this.
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let zeros = |n: i32| "0".repeat(n.unsigned_abs() as usize);
    if count <= point && point <= 21 {
        format!("{sign}{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(point.unsigned_abs() as usize);
        format!("{sign}{whole}.{fraction}")
    } else if -6 < point && point <= 0 {
        format!("{sign}0.{}{digits}", zeros(point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let plus = if point > 0 { "+" } else { "" };
        format!("{sign}{first}{dot}{rest}e{plus}{}", point - 1)
    }
}
