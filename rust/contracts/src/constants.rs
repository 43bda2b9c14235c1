//! Constants of Rust as those of TypeScript.
use std::path::Path;

use syn::{BinOp, Expr, ExprLit, Item, ItemConst, ItemEnum, Lit};

use crate::docs::comment;
use crate::problem::Problem;
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
    let value = value_of(&constant.expr, items)?;
    Ok(format!("{}export const {} = {value};\n\n", comment(&constant.attrs), constant.ident))
}

/// A text, a fraction, a list, or a whole number that may be computed.
fn value_of(value: &Expr, items: &[Item]) -> Result<String, Problem> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(format!("'{}'", text.value())),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => Ok(number.base10_digits().to_owned()),
        Expr::Array(array) => {
            let values = array.elems.iter().map(|value| value_of(value, items)).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("[{}] as const", values.join(", ")))
        }
        number => Ok(number_of(number, items)?.to_string()),
    }
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
