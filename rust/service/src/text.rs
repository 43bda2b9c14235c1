//! Texts of a limited length.

/// Cuts a text that is longer, in UTF-16 units: the other processes count so.
pub fn cut(mut text: String, length: usize) -> String {
    // No character takes fewer bytes than units.
    if text.len() <= length {
        return text;
    }
    let mut units = 0;
    let end = text.char_indices().find(|&(_, character)| {
        units += character.len_utf16();
        units > length
    });
    if let Some((at, _)) = end {
        text.truncate(at);
        text.push_str(" ...");
    }
    text
}
