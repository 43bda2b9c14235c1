//! A type of Rust as JSON has it, in TypeScript.
use std::collections::BTreeSet;

use quote::ToTokens;
use syn::{GenericArgument, Path, PathArguments, Type};

use crate::problem::Problem;
use crate::sources::Sources;

/// Names, and what they are in TypeScript.
pub type Names = &'static [(&'static str, &'static str)];

/// The types of one contract, and those that its declarations have named so far.
pub struct Types {
    /// Types that are no message themselves.
    pub foreign: Names,
    /// Members that are any `Value` in Rust.
    pub values: Names,
    pub sources: Sources,
    pub used: BTreeSet<usize>,
}

/// Where a type is named.
pub struct Scope<'a> {
    pub file: usize,
    pub parameters: &'a [String],
}

impl Types {
    pub fn name(&mut self, kind: &Type, scope: &Scope<'_>) -> Result<String, Problem> {
        match kind {
            Type::Path(path) => self.path(&path.path, scope),
            Type::Reference(reference) => self.name(&reference.elem, scope),
            Type::Array(array) => Ok(list(&self.name(&array.elem, scope)?)),
            Type::Slice(slice) => Ok(list(&self.name(&slice.elem, scope)?)),
            Type::Tuple(tuple) => {
                let members = tuple.elems.iter().map(|member| self.name(member, scope));
                Ok(format!("readonly [{}]", members.collect::<Result<Vec<_>, _>>()?.join(", ")))
            }
            _ => Err(format!("the type {} cannot be a message", kind.to_token_stream())),
        }
    }

    fn path(&mut self, path: &Path, scope: &Scope<'_>) -> Result<String, Problem> {
        let segment = path.segments.last().ok_or("a path without a name")?;
        let name = segment.ident.to_string();
        let mut arguments = Vec::new();
        for argument in type_arguments(&segment.arguments) {
            arguments.push(self.name(argument, scope)?);
        }
        if scope.parameters.contains(&name) {
            return Ok(name);
        }
        if let Some((_, json)) = self.foreign.iter().find(|(foreign, _)| *foreign == name) {
            return Ok((*json).to_owned());
        }
        Ok(match (name.as_str(), arguments.as_slice()) {
            ("String" | "str" | "PathBuf" | "Path", []) => "string".to_owned(),
            ("bool", []) => "boolean".to_owned(),
            ("u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" | "f32" | "f64", []) => "number".to_owned(),
            ("Value", []) => "unknown".to_owned(),
            ("Box" | "Arc" | "Rc" | "Cow", [inner]) => inner.clone(),
            ("Vec", [inner]) => list(inner),
            ("Option", [inner]) => format!("{inner} | null"),
            ("HashMap" | "BTreeMap", [_, value]) => format!("Readonly<Record<string, {value}>>"),
            (_, arguments) => {
                let at = self.sources.find(&name, Some(scope.file))?;
                self.used.insert(at);
                if arguments.is_empty() { name } else { format!("{name}<{}>", arguments.join(", ")) }
            }
        })
    }
}

/// The type of what is there, if it may be missing.
pub fn optional(kind: &Type) -> Option<&Type> {
    let Type::Path(path) = kind else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    type_arguments(&segment.arguments).next()
}

fn type_arguments(arguments: &PathArguments) -> impl Iterator<Item = &Type> {
    let arguments = match arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    };
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        GenericArgument::Type(kind) => Some(kind),
        _ => None,
    })
}

fn list(item: &str) -> String {
    let is_simple = item.chars().all(|letter| letter.is_alphanumeric());
    if is_simple { format!("readonly {item}[]") } else { format!("readonly ({item})[]") }
}
