//! Which types of Rust are messages of programs in TypeScript.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::Problem;
use crate::constants::constants;
use crate::sources::Sources;
use crate::types::Types;

/// A file of `src/contracts`.
pub struct Contract {
    pub file: &'static str,
    /// What its first comment says.
    pub about: &'static str,
    /// Files of Rust, and folders of these.
    pub sources: &'static [&'static str],
    /// The types that are sent; those that they have follow.
    pub roots: &'static [&'static str],
    /// Types that are no message themselves, and what they are in JSON.
    pub foreign: &'static [(&'static str, &'static str)],
    /// Members that are objects, though Rust has any `Value` for them.
    pub objects: &'static [&'static str],
    /// Constants, and enums with numbers, that both sides know; with their files.
    pub constants: &'static [(&'static str, &'static [&'static str])],
}

pub const CONTRACTS: &[Contract] = &[
    Contract {
        file: "front.ts",
        about: "The messages between the supervisor of a gateway and its front, one JSON text to a line.",
        sources: &["rust/front/src"],
        roots: &["ToFront", "FromFront"],
        foreign: &[],
        objects: &["fields"],
        constants: &[("rust/front/src/internal.rs", &["TRIAL"])],
    },
    Contract {
        file: "front-validate.ts",
        about: "The policy `validate`, with its schemas, as the front gets it in a text of its own.",
        sources: &["rust/front/src/policies/validate"],
        roots: &["CompiledValidate"],
        foreign: &[("Number", "number"), ("Json", "unknown")],
        objects: &[],
        constants: &[],
    },
];

impl Contract {
    /// The text of the file. It is formatted by whoever writes it.
    pub fn text(&self, root: &Path) -> Result<String, Problem> {
        let mut types = Types { contract: self, sources: Sources::read(root, self.sources)?, used: BTreeSet::new() };
        for name in self.roots {
            let at = types.sources.find(name, None)?;
            types.used.insert(at);
        }
        // A declaration names others, which are declared in their turn.
        let mut declared = BTreeMap::new();
        while let Some(at) = types.used.iter().copied().find(|at| !declared.contains_key(at)) {
            declared.insert(at, types.declaration(at)?);
        }
        let constants = self.constants.iter().map(|(file, names)| constants(&root.join(file), names));
        let constants = constants.collect::<Result<String, _>>()?;
        Ok(format!(
            "/**\n * {}\n *\n * `npm run contracts` has written this file from {}: change it there.\n */\n\n{constants}{}",
            self.about,
            self.sources.iter().map(|source| format!("`{source}`")).collect::<Vec<_>>().join(" and "),
            declared.into_values().collect::<String>()
        ))
    }
}
