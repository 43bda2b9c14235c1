//! What there is of the files of sqlite services, for an actor host that may not enter their folders.
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use crate::messages::{Look, Report, Settings};

const WRITABLE_FOR_ALL: u32 = 0o002;

pub fn look(settings: &Settings, &Look { look, folder, ref file }: &Look) -> Report {
    let folders = &settings.sqlite_folders;
    let here = folders.get(folder);
    Report::Looked {
        look,
        folders: folders.iter().map(|path| fs::canonicalize(path).unwrap_or_else(|_| path.clone())).collect(),
        belongs_to_root: settings.users.is_some() && here.is_some_and(|path| belongs_to_root(path)),
        exists: here.is_some_and(|path| is_below(file, path) && file.exists()),
    }
}

fn belongs_to_root(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.uid() == 0 && found.mode() & WRITABLE_FOR_ALL == 0)
}

/// Whether the path is below the folder, by its text alone: other files are not looked for.
fn is_below(file: &Path, folder: &Path) -> bool {
    file.starts_with(folder) && !file.components().any(|part| part == Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    fn looked(folder: &Path, file: &Path) -> (bool, bool) {
        let settings = Settings {
            launcher: PathBuf::new(),
            users: None,
            records: PathBuf::new(),
            channels: PathBuf::new(),
            handler_folder: PathBuf::new(),
            object_folder: PathBuf::new(),
            sqlite_folders: vec![folder.to_owned()],
            programs: BTreeMap::new(),
            environment: BTreeMap::new(),
        };
        match look(&settings, &Look { look: 1, folder: 0, file: file.to_owned() }) {
            Report::Looked { exists, belongs_to_root, .. } => (exists, belongs_to_root),
            _ => unreachable!(),
        }
    }

    #[test]
    fn only_files_below_the_folder_are_looked_for() {
        let folder = std::env::temp_dir().join(format!("edge-starter-look-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("there.db"), "").unwrap();
        assert_eq!(looked(&folder, &folder.join("there.db")), (true, false));
        assert_eq!(looked(&folder, &folder.join("missing.db")), (false, false));
        assert_eq!(looked(&folder, Path::new("/etc/passwd")), (false, false));
        assert_eq!(looked(&folder, &folder.join("../../etc/passwd")), (false, false));
        fs::remove_dir_all(folder).unwrap();
    }
}
