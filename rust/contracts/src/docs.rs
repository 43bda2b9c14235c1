//! Comments of Rust as those of TypeScript.
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Lines have at most 120 characters, of which some are in front of a comment.
const WIDTH: usize = 106;

/// The comment above something, or nothing.
pub fn comment(attributes: &[Attribute]) -> String {
    block(&lines(attributes))
}

fn block(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        [line] => format!("/** {line} */\n"),
        _ => format!("/**\n{} */\n", lines.iter().map(|line| format!(" * {line}\n")).collect::<String>()),
    }
}

/// The text, wrapped anew: its lines begin elsewhere than in Rust.
fn lines(attributes: &[Attribute]) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in attributes.iter().filter_map(text).flat_map(|text| words(&text)) {
        let last = lines.last_mut().expect("there is always a line");
        if last.is_empty() {
            *last = word;
        } else if last.chars().count() + 1 + word.chars().count() <= WIDTH {
            last.push(' ');
            last.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

fn text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The words, where links to other items of Rust are names only.
fn words(text: &str) -> Vec<String> {
    let plain = text.replace("[`", "`").replace("`]", "`");
    plain.split_whitespace().map(str::to_owned).collect()
}
