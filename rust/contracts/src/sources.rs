//! The types that the sources of Rust define.
use std::path::{Path, PathBuf};

use syn::{Attribute, Generics, Ident, Item, ItemEnum, ItemStruct, ItemType};

use crate::problem::Problem;
use crate::serde_attributes::Serde;

/// A type of Rust, and the file that it is in.
pub struct Source {
    pub file: usize,
    pub kind: Kind,
}

#[derive(Clone)]
pub enum Kind {
    Struct(ItemStruct),
    Enum(ItemEnum),
    Alias(ItemType),
}

impl Source {
    pub fn name(&self) -> &Ident {
        match &self.kind {
            Kind::Struct(item) => &item.ident,
            Kind::Enum(item) => &item.ident,
            Kind::Alias(item) => &item.ident,
        }
    }

    pub fn attributes(&self) -> &[Attribute] {
        match &self.kind {
            Kind::Struct(item) => &item.attrs,
            Kind::Enum(item) => &item.attrs,
            Kind::Alias(item) => &item.attrs,
        }
    }

    pub fn generics(&self) -> &Generics {
        match &self.kind {
            Kind::Struct(item) => &item.generics,
            Kind::Enum(item) => &item.generics,
            Kind::Alias(item) => &item.generics,
        }
    }

    fn is_message(&self) -> bool {
        Serde::of(self.attributes()).is_ok_and(|serde| serde.is_serialized || serde.is_deserialized)
    }
}

/// All types of some files.
pub struct Sources(Vec<Source>);

impl Sources {
    /// Reads files, and all files of folders.
    pub fn read(root: &Path, paths: &[&str]) -> Result<Self, Problem> {
        let files = rust_files(root, paths)?;
        Ok(Self::of(files.iter().map(|path| parse(path)).collect::<Result<_, _>>()?))
    }

    pub fn of(files: Vec<syn::File>) -> Self {
        let items = files.into_iter().enumerate().flat_map(|(file, parsed)| {
            parsed.items.into_iter().filter_map(kind).map(move |kind| Source { file, kind })
        });
        Self(items.collect())
    }

    pub fn get(&self, at: usize) -> &Source {
        &self.0[at]
    }

    /// The place of a type that is named in a file: that of the file; otherwise the only message of this name, or the
    /// only alias.
    pub fn find(&self, name: &str, file: Option<usize>) -> Result<usize, Problem> {
        let named = || self.0.iter().enumerate().filter(|(_, source)| source.name() == name);
        if let Some((at, _)) = named().find(|(_, source)| Some(source.file) == file) {
            return Ok(at);
        }
        let messages: Vec<usize> = named().filter(|(_, source)| source.is_message()).map(|(at, _)| at).collect();
        let is_alias = |source: &Source| matches!(source.kind, Kind::Alias(_));
        let aliases: Vec<usize> = named().filter(|(_, source)| is_alias(source)).map(|(at, _)| at).collect();
        match (messages.as_slice(), aliases.as_slice()) {
            ([at], _) | ([], [at]) => Ok(*at),
            ([], []) => Err(format!(
                "the type {name} is none of its sources, or its JSON is not derived: name what it is in JSON in \
                 `foreign`, in rust/contracts/src/contracts.rs"
            )),
            _ => Err(format!("more than one type of its sources is called {name}")),
        }
    }
}

pub fn parse(path: &Path) -> Result<syn::File, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn kind(item: Item) -> Option<Kind> {
    match item {
        Item::Struct(item) => Some(Kind::Struct(item)),
        Item::Enum(item) => Some(Kind::Enum(item)),
        Item::Type(item) => Some(Kind::Alias(item)),
        _ => None,
    }
}

fn rust_files(root: &Path, paths: &[&str]) -> Result<Vec<PathBuf>, Problem> {
    let mut files = Vec::new();
    for path in paths {
        add_files(&root.join(path), &mut files).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(files)
}

fn add_files(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_file() {
        files.extend((path.extension().is_some_and(|extension| extension == "rs")).then(|| path.to_owned()));
        return Ok(());
    }
    let mut children = std::fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
    children.sort_by_key(std::fs::DirEntry::file_name);
    children.iter().try_for_each(|child| add_files(&child.path(), files))
}
