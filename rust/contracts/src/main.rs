//! Writes `src/contracts`: the messages between programs in Rust and in TypeScript, as types and constants of
//! TypeScript. `scripts/contracts.mjs` runs it. It reads the sources of Rust, not the compiled types: so a check takes
//! seconds, and no program has a dependency more.
mod constants;
mod contracts;
mod declarations;
mod docs;
mod problem;
mod serde_attributes;
mod sources;
mod types;

use std::path::Path;
use std::process::ExitCode;

use contracts::CONTRACTS;

/// The arguments are the root of the repository and the folder for the files.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, output] = arguments.as_slice() else {
        eprintln!("use: edge-contracts <root of the repository> <folder for the files>");
        return ExitCode::FAILURE;
    };
    for contract in CONTRACTS {
        let file = Path::new(output).join(contract.file);
        let written = contract.text(Path::new(root)).and_then(|text| {
            std::fs::write(&file, text).map_err(|error| format!("{} cannot be written: {error}", file.display()))
        });
        if let Err(problem) = written {
            eprintln!("{}: {problem}", contract.file);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
