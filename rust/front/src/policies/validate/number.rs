//! Numbers of JSON, compared and divided as what is written.
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Deserializer};

/// Beyond it, floats are not made whole numbers.
const WHOLE_LIMIT: f64 = 1e30;

#[derive(Clone, Copy, Debug)]
pub enum Number {
    Whole(i128),
    /// Not whole, or very large.
    Float(f64),
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        if value.fract() == 0.0 && value.abs() < WHOLE_LIMIT { Self::Whole(value as i128) } else { Self::Float(value) }
    }
}

impl Number {
    /// A number as JSON writes it, and nothing else.
    pub fn read(text: &str) -> Option<Self> {
        // Where there is white space, it is no number.
        let looks_like_one = text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
            && text.ends_with(|last: char| last.is_ascii_digit());
        if looks_like_one { serde_json::from_str(text).ok() } else { None }
    }

    pub fn is_whole(self) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::Float(value) => value.fract() == 0.0,
        }
    }

    /// About what it takes to find out whether it is a multiple: a division for each digit by which they are apart.
    pub fn division_steps(self, other: Self) -> u64 {
        let magnitude = |number| match number {
            Self::Whole(value) => (value as f64).abs(),
            Self::Float(value) => value.abs(),
        };
        match (self, other) {
            (Self::Whole(_), Self::Whole(_)) => 1,
            // Floats have up to 17 digits. What is not finite becomes 0 here, and is compared at once.
            _ => 80 + 4 * (magnitude(self).log10() - magnitude(other).log10()).abs() as u64,
        }
    }

    /// Exact: by their decimal digits, as 0.3 is a multiple of 0.1.
    pub fn is_multiple_of(self, other: Self) -> bool {
        if let (Self::Whole(value), Self::Whole(divisor)) = (self, other) {
            return divisor == 0 || value % divisor == 0;
        }
        let ((mut digits, exponent), (mut divisor, other_exponent)) = (self.decimal(), other.decimal());
        if divisor == 0 {
            return true;
        }
        if exponent >= other_exponent {
            digits %= divisor;
            for _ in 0..exponent - other_exponent {
                digits = digits * 10 % divisor;
            }
            return digits == 0;
        }
        for _ in 0..other_exponent - exponent {
            match divisor.checked_mul(10) {
                Some(larger) => divisor = larger,
                None => return digits == 0,
            }
        }
        digits % divisor == 0
    }

    /// Digits, and a power of ten, without the sign.
    fn decimal(self) -> (u128, i32) {
        let value = match self {
            Self::Whole(value) => return (value.unsigned_abs(), 0),
            Self::Float(value) => value.abs(),
        };
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let digits = format!("{whole}{fraction}").parse().unwrap_or(0);
        (digits, exponent.parse::<i32>().unwrap_or(0) - fraction.len() as i32)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (*self, *other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(&other)),
            (Self::Float(one), Self::Float(other)) => one.partial_cmp(&other),
            // A float is not whole, or larger than all whole numbers: rounding does not matter.
            (Self::Whole(one), Self::Float(other)) => (one as f64).partial_cmp(&other),
            (Self::Float(one), Self::Whole(other)) => one.partial_cmp(&(other as f64)),
        }
    }
}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Whole(value) => value.hash(state),
            Self::Float(value) => value.to_bits().hash(state),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(formatter),
            Self::Float(value) => value.fmt(formatter),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
        Ok(whole.map_or_else(|| number.as_f64().unwrap_or_default().into(), Self::Whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn multiples_are_exact() {
        let is_multiple = |value: &str, of: &str| number(value).is_multiple_of(number(of));
        assert!(is_multiple("0.3", "0.1") && is_multiple("4.35", "0.01") && is_multiple("0.0075", "0.0001"));
        assert!(!is_multiple("0.00751", "0.0001") && !is_multiple("7", "2") && is_multiple("1e308", "0.5"));
        assert!(!is_multiple("1e-300", "1e300") && is_multiple("0", "1e300") && is_multiple("1e300", "1e-300"));
        assert!(is_multiple("9223372036854775807", "7") && !is_multiple("9223372036854775806", "7"));
    }

    #[test]
    fn order_is_that_of_values() {
        assert!(number("1.0") == number("1") && number("1.5") > number("1") && number("1e300") > number("1"));
        assert!(number("18446744073709551615") > number("9223372036854775807"));
        assert!(number("-1.5") < number("-1") && number("1e300").is_whole() && !number("1.5").is_whole());
    }
}
