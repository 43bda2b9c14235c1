//! The folders of the sockets of one process: one that handlers see, and one for the actor host.
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use crate::messages::Settings;
use crate::users::Identity;

/// They are removed when this is dropped, when the process must have ended.
pub struct Folders {
    pub name: String,
    paths: [PathBuf; 2],
}

impl Folders {
    /// # Errors
    /// There is no room for them.
    pub fn make(settings: &Settings, identity: Option<Identity>) -> Result<Self, String> {
        let name = random_name().map_err(|error| format!("no random name: {error}"))?;
        let paths = [&settings.handler_folder, &settings.object_folder].map(|folder| folder.join(&name));
        let folders = Self { name, paths };
        let [handlers, objects] = &folders.paths;
        let identity = identity.zip(settings.users.as_ref());
        // Handlers know the name of the socket in the first; only web and the actor host are in the group of the other.
        let group = identity.map(|(identity, _)| (identity.user, identity.group));
        make(handlers, 0o711, group)?;
        let group = identity.map(|(identity, users)| (identity.user, users.product));
        make(objects, if group.is_some() { 0o710 } else { 0o700 }, group)?;
        Ok(folders)
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for path in &self.paths {
            // What is left is removed at the next start of an actor host.
            let _ = remove(path);
        }
    }
}

fn make(path: &Path, mode: u32, owner: Option<(u32, u32)>) -> Result<(), String> {
    let made = DirBuilder::new().mode(mode).create(path).and_then(|()| {
        if let Some((user, group)) = owner {
            lchown(path, Some(user), Some(group))?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    });
    made.map_err(|error| format!("{}: {error}", path.display()))
}

/// Removes a folder that somebody else could write to: no link in it is followed.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn random_name() -> io::Result<String> {
    let mut bytes = [0; 9];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
