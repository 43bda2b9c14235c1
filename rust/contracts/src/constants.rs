//! Constants of Rust as those of TypeScript.
use std::path::Path;

use syn::{BinOp, Expr, Item, ItemConst, ItemEnum, Lit};

use crate::Problem;
use crate::docs::comment;
use crate::serde_attributes::Case;
use crate::sources::parse;

/// Declares those of the names in a file, in the order of the file.
pub fn constants(path: &Path, names: &[&str]) -> Result<String, Problem> {
    let items = parse(path)?.items;
    let mut text = String::new();
    let mut found = 0;
    for item in &items {
        match item {
            Item::Const(constant) if names.iter().any(|name| constant.ident == name) => {
                text.push_str(&declared(constant, &items)?);
                found += 1;
            }
            Item::Enum(kinds) if names.iter().any(|name| kinds.ident == name) => {
                text.push_str(&numbers(kinds, &items)?);
                found += 1;
            }
            _ => {}
        }
    }
    if found == names.len() { Ok(text) } else { Err(format!("{} has not all of {names:?}", path.display())) }
}

fn declared(constant: &ItemConst, items: &[Item]) -> Result<String, Problem> {
    let value = match &*constant.expr {
        Expr::Lit(literal) if matches!(literal.lit, Lit::Str(_)) => match &literal.lit {
            Lit::Str(text) => format!("'{}'", text.value()),
            _ => unreachable!("it is a text"),
        },
        number => number_of(number, items)?.to_string(),
    };
    Ok(format!("{}export const {} = {value};\n\n", comment(&constant.attrs), constant.ident))
}

/// An enum whose variants are numbers, as an object.
fn numbers(kinds: &ItemEnum, items: &[Item]) -> Result<String, Problem> {
    let mut members = String::new();
    for variant in &kinds.variants {
        let (_, value) = variant.discriminant.as_ref().ok_or_else(|| format!("{} has no number", variant.ident))?;
        let name = Case::Camel.of_variant(&variant.ident.to_string());
        members.push_str(&format!("{}{name}: {},\n", comment(&variant.attrs), number_of(value, items)?));
    }
    let name = Case::Snake.of_variant(&kinds.ident.to_string()).to_uppercase();
    Ok(format!("{}export const {name} = {{\n{members}\n}} as const;\n\n", comment(&kinds.attrs)))
}

fn number_of(value: &Expr, items: &[Item]) -> Result<u64, Problem> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().map_err(|error| error.to_string()),
            _ => Err("a constant is neither a number nor a text".to_owned()),
        },
        Expr::Path(path) => {
            let named = items.iter().find_map(|item| match item {
                Item::Const(constant) if path.path.is_ident(&constant.ident) => Some(&constant.expr),
                _ => None,
            });
            number_of(named.ok_or("a constant is made of one of another file")?, items)
        }
        Expr::Paren(inner) => number_of(&inner.expr, items),
        Expr::Binary(binary) => {
            let (left, right) = (number_of(&binary.left, items)?, number_of(&binary.right, items)?);
            match binary.op {
                BinOp::Add(_) => Ok(left + right),
                BinOp::Mul(_) => Ok(left * right),
                BinOp::Shl(_) => Ok(left << right),
                _ => Err("a constant has an operator that rust/contracts does not know yet".to_owned()),
            }
        }
        _ => Err("a constant is computed in a way that rust/contracts does not know yet".to_owned()),
    }
}
