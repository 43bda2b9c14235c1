//! Users of processes: one for each, which no other program has, recorded in a folder where other programs of the
//! installation look (`src/sandbox/run-user.ts`).
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::messages::Users;

/// Some random ids can be in use, more often in a container with few ids.
const ATTEMPTS: usize = 1_000;

/// Whom a process runs as.
#[derive(Clone, Copy)]
pub struct Identity {
    pub user: u32,
    pub group: u32,
}

/// A user that is in use until this is dropped, when the process must have ended.
pub struct Claim {
    pub identity: Identity,
    /// None: others may have it, too.
    record: Option<PathBuf>,
}

impl Claim {
    /// A user that no process has.
    ///
    /// # Errors
    /// None is left.
    pub fn unused(users: &Users, records: &Path) -> Result<Self, String> {
        let this = this_process().map_err(|error| format!("/proc/self/stat: {error}"))?;
        for _ in 0..ATTEMPTS {
            let random = random_number().map_err(|error| format!("no random number: {error}"))?;
            let user = users.first + random % users.count;
            if has_processes(user).map_err(|error| format!("/proc: {error}"))? {
                continue;
            }
            let record = records.join(format!("user-{user}"));
            // A link is made together with its content.
            match symlink(&this, &record) {
                Ok(()) => {
                    return Ok(Self { identity: Identity { user, group: users.group }, record: Some(record) });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", record.display())),
            }
        }
        Err("there is no user id left for it".into())
    }

    /// The owner of a folder, and never root.
    pub fn owner_of(folder: &Path, users: &Users) -> Self {
        let own = Identity { user: users.sqlite, group: users.sqlite };
        let found = fs::metadata(folder).ok().filter(|found| found.uid() != 0);
        let identity = found.map_or(own, |found| Identity { user: found.uid(), group: found.gid() });
        Self { identity, record: None }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(record) = &self.record {
            // What is left is found to be of an ended process later.
            let _ = fs::remove_file(record);
        }
    }
}

/// The same as `THIS_PROCESS` of `src/util/process-liveness.ts`: the id of this process, and when it was started.
fn this_process() -> io::Result<String> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rfind(')').and_then(|at| stat.get(at + 2..)).unwrap_or_default();
    let start = after_name.split(' ').nth(19).ok_or(ErrorKind::InvalidData)?;
    Ok(format!("{}-{start}", std::process::id()))
}

fn random_number() -> io::Result<u32> {
    let mut bytes = [0; 4];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

fn has_processes(user: u32) -> io::Result<bool> {
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let is_process = path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
        // One that has ended meanwhile has no user.
        if is_process && fs::read_to_string(path.join("status")).is_ok_and(|status| has_user(&status, user)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `status`: of a process, with the line `Uid:`, its four users.
fn has_user(status: &str, user: u32) -> bool {
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    users.split_whitespace().any(|text| text.parse() == Ok(user))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn users(first: u32, count: u32) -> Users {
        Users { first, count, group: 7, groups: Vec::new(), sqlite: 99, product: 5 }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("edge-starter-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn each_claim_has_a_user_of_its_own_until_it_is_dropped() {
        let records = folder("claims");
        let users = users(1_900_100_000, 2);
        let claims = [(); 2].map(|()| Claim::unused(&users, &records).unwrap());
        assert_ne!(claims[0].identity.user, claims[1].identity.user);
        assert_eq!(claims[0].identity.group, 7);
        let record = records.join(format!("user-{}", claims[0].identity.user));
        assert!(fs::read_link(record).unwrap().to_str().unwrap().starts_with(&format!("{}-", std::process::id())));
        assert!(Claim::unused(&users, &records).is_err_and(|why| why.contains("no user id left")));
        drop(claims);
        assert!(Claim::unused(&users, &records).is_ok());
        fs::remove_dir_all(records).unwrap();
    }

    #[test]
    fn a_user_with_processes_is_not_claimed() {
        let own = nix::unistd::getuid().as_raw();
        assert!(has_processes(own).unwrap());
        assert!(!has_processes(1_900_200_000).unwrap());
        assert!(has_user("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5", 3));
        assert!(!has_user("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5", 5));
    }

    #[test]
    fn a_folder_of_root_or_none_is_left_to_the_user_of_sqlite_services() {
        assert_eq!(Claim::owner_of(Path::new("/nowhere"), &users(1, 1)).identity.user, 99);
        let own = folder("owned");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        let uid = nix::unistd::getuid().as_raw();
        let expected = if uid == 0 { 99 } else { uid };
        assert_eq!(Claim::owner_of(&own, &users(1, 1)).identity.user, expected);
        fs::remove_dir_all(own).unwrap();
    }
}
