//! Dates, times and durations of RFC 3339.

/// Days of the months of a year that is none of 366 days.
const DAYS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

pub fn is_date_time(text: &str) -> bool {
    text.is_char_boundary(10)
        && text.len() > 11
        && is_date(&text[..10])
        && matches!(text.as_bytes()[10], b'T' | b't')
        && is_time(&text[11..])
}

pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (digits(&bytes[..4]), digits(&bytes[5..7]), digits(&bytes[8..])) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        1..=12 => DAYS[month as usize - 1],
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// Whether a text is a time with its offset.
pub fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 9 || bytes[2] != b':' || bytes[5] != b':' {
        return false;
    }
    let (Some(hour), Some(minute), Some(second)) = (digits(&bytes[..2]), digits(&bytes[3..5]), digits(&bytes[6..8]))
    else {
        return false;
    };
    let mut rest = &bytes[8..];
    if let [b'.', fraction @ ..] = rest {
        let end = fraction.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(fraction.len());
        if end == 0 {
            return false;
        }
        rest = &fraction[end..];
    }
    let Some(offset) = offset_minutes(rest) else { return false };
    // Seconds are added at the end of a day of UTC.
    let is_last_minute = || (hour as i32 * 60 + minute as i32 - offset).rem_euclid(24 * 60) == 24 * 60 - 1;
    hour < 24 && minute < 60 && (second < 60 || (second == 60 && is_last_minute()))
}

fn offset_minutes(bytes: &[u8]) -> Option<i32> {
    match bytes {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), hours @ .., b':', _, _] => {
            let (hour, minute) = (digits(hours)?, digits(&bytes[bytes.len() - 2..])?);
            let minutes = (hours.len() == 2 && hour < 24 && minute < 60).then_some((hour * 60 + minute) as i32)?;
            Some(if *sign == b'-' { -minutes } else { minutes })
        }
        _ => None,
    }
}

/// RFC 3339, appendix A.
pub fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else { return false };
    if let Some(weeks) = rest.strip_suffix('W') {
        return is_number(weeks);
    }
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (rest, None),
    };
    let fits =
        |text: &str, units: &str| units_of(text).is_some_and(|found| !found.is_empty() && units.contains(&found));
    match time {
        Some(time) => fits(time, "HMS") && (date.is_empty() || fits(date, "YMD")),
        None => fits(date, "YMD"),
    }
}

/// The units of numbers in a row.
fn units_of(text: &str) -> Option<String> {
    let parts = text.split_inclusive(|character: char| !character.is_ascii_digit());
    parts
        .map(|part| {
            let unit = part.chars().last().filter(|unit| !unit.is_ascii_digit())?;
            is_number(&part[..part.len() - unit.len_utf8()]).then_some(unit)
        })
        .collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn digits(bytes: &[u8]) -> Option<u32> {
    let is_number = !bytes.is_empty() && bytes.len() <= 4 && bytes.iter().all(u8::is_ascii_digit);
    is_number.then(|| bytes.iter().fold(0, |value, byte| value * 10 + u32::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_those_of_rfc_3339_and_nothing_else() {
        for text in ["2024-02-29T23:59:59Z", "1990-12-31t23:59:60z", "1998-12-31T15:59:60.123-08:00"] {
            assert!(is_date_time(text), "{text}");
        }
        for text in [
            "2023-02-29T00:00:00Z",
            "2023-13-01T00:00:00Z",
            "2023-01-01T24:00:00Z",
            "2023-01-01T00:00:60Z",
            "2023-01-01T00:00:00",
            "2023-01-01 00:00:00Z",
            "2023-01-01T00:00:00.Z",
            "2023-01-01T00:00:00+24:00",
            "2023-01-0１T00:00:00Z",
            "",
        ] {
            assert!(!is_date_time(text), "{text}");
        }
    }

    #[test]
    fn durations_have_their_units_in_order_and_none_left_out_in_between() {
        for text in ["P4DT12H30M5S", "P4Y", "PT0S", "P1M", "PT1M", "P2W", "P1Y2M3D"] {
            assert!(is_duration(text), "{text}");
        }
        for text in ["", "P", "PT", "P1", "4D", "P1D2H", "P2D1Y", "P1Y2W", "PT1D", "P１Y", "P1YT", "PT1H3S", "P1Y3D"] {
            assert!(!is_duration(text), "{text}");
        }
    }
}
