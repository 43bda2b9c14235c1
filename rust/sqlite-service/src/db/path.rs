//! Finds and checks the file of a service.
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use edge_service::error::{CallError, Kind};

/// Returns the path of the file with symbolic links resolved. It must be in one of the folders; relative paths refer to
/// the first.
///
/// # Errors
///
/// `unavailable` with the problem of the path.
pub fn resolve(path: &str, creates: bool, folders: &[PathBuf]) -> Result<PathBuf, CallError> {
    if path.trim() != path || path.is_empty() || path.starts_with(':') || path.starts_with("file:") {
        return Err(refused(format!("\"{path}\" is not the path of a file")));
    }
    let first = folders.first().ok_or_else(|| refused("there is no folder for databases (SQLITE_DIR)".to_owned()))?;
    let given = normalized(&first.join(path)).map_err(|error| refused(error.to_string()))?;
    let shown = given.display();
    let (Some(parent), Some(name)) = (given.parent(), given.file_name()) else {
        return Err(refused(format!("{shown} is not a file")));
    };
    let Some(real_parent) = existing(parent)?.filter(|parent| parent.is_dir()) else {
        let advice = "does not exist, or is none, or may not be entered: create it, or correct the path";
        return Err(refused(format!("the folder {} {advice}", parent.display())));
    };
    let exists = if_there(fs::symlink_metadata(&given))?.is_some();
    let file = if exists { existing(&given)? } else { Some(real_parent.join(name)) };
    let file = file.ok_or_else(|| refused(format!("{shown} is a symbolic link to nothing")))?;
    require_within(&file, folders, &given)?;
    if exists && !file.is_file() {
        return Err(refused(format!("{shown} is not a file")));
    }
    if !exists && !creates {
        return Err(refused(format!(
            "{shown} does not exist, and none is made: it was there before, or create_if_missing is false"
        )));
    }
    Ok(file)
}

fn require_within(file: &Path, folders: &[PathBuf], given: &Path) -> Result<(), CallError> {
    for folder in folders {
        if existing(folder)?.is_some_and(|real| file.starts_with(real)) {
            return Ok(());
        }
    }
    let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let (given, folders) = (given.display(), names.join(", "));
    Err(refused(format!("{given} is outside of {folders}, where databases have to be (SQLITE_DIR)")))
}

/// The absolute path, without `.` and `..`.
fn normalized(path: &Path) -> io::Result<PathBuf> {
    let mut normalized = PathBuf::new();
    for component in std::path::absolute(path)?.components() {
        match component {
            Component::ParentDir => {
                normalized.pop();
            }
            other => normalized.push(other),
        }
    }
    Ok(normalized)
}

/// The path with symbolic links resolved; `None` when it does not exist.
fn existing(path: &Path) -> Result<Option<PathBuf>, CallError> {
    if_there(fs::canonicalize(path))
}

fn if_there<T>(found: io::Result<T>) -> Result<Option<T>, CallError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::ELOOP) => Ok(None),
            _ => Err(refused(error.to_string())),
        },
    }
}

fn refused(message: String) -> CallError {
    CallError::new(Kind::Unavailable, message)
}
