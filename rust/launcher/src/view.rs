//! What the files of this machine look like to a process of the product that is not root any more: where folders are
//! closed to its user, it sees what it needs of them and nothing else; a file that its user may not read is a copy that
//! belongs to it. Everything is at its own path.
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::chdir;

use crate::failure::{Context, Result};
use crate::mounts::{Tree, inside, make_folder, make_read_only, mount_tmpfs};
use crate::plan::Identity;

/// Where copies are made, before they are attached where their files are.
const STAGE: &str = "/tmp";
const ENTER: u32 = 0o1;
const READ: u32 = 0o4;

/// # Errors
/// The kernel allows no mounts.
pub fn enter(needs: &[PathBuf], identity: &Identity) -> Result<()> {
    let there: Vec<_> = needs.iter().filter(|path| path.exists()).map(PathBuf::as_path).collect();
    let closed: BTreeSet<_> = there.iter().flat_map(|path| closed_above(path, identity)).collect();
    let (unreadable, readable): (Vec<_>, Vec<_>) = there.into_iter().partition(|path| is_unreadable(path, identity));
    if closed.is_empty() && unreadable.is_empty() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWNS).context("a namespace of mounts")?;
    // Nothing of what follows is seen outside; what is mounted there later is seen here.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>).context("/")?;
    let behind = readable.into_iter().filter(|path| closed.iter().any(|folder| path.starts_with(folder)));
    let mut trees = behind.map(|path| Ok((path, Tree::open(path)?))).collect::<Result<Vec<_>>>()?;
    trees.append(&mut copies_of(&unreadable, identity)?);
    chdir("/").context("/")?;
    place(closed.iter().map(PathBuf::as_path).collect(), trees)
}

/// The folders above a path that its user cannot enter.
fn closed_above<'a>(path: &'a Path, identity: &'a Identity) -> impl Iterator<Item = PathBuf> + 'a {
    let above = path.ancestors().skip(1);
    above.filter(|folder| fs::metadata(folder).is_ok_and(|found| !may(&found, ENTER, identity))).map(Path::to_owned)
}

/// Whether it is a file that the user cannot read. Whoever has made a folder decides who reads that.
fn is_unreadable(path: &Path, identity: &Identity) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && !may(&found, READ, identity))
}

/// Whether its mode gives the user this right. Lists of access are not looked at.
fn may(found: &Metadata, right: u32, identity: &Identity) -> bool {
    let shift = match found {
        _ if found.uid() == identity.user => 6,
        _ if identity.has_group(found.gid()) => 3,
        _ => 0,
    };
    found.mode() >> shift & right != 0
}

/// Copies in memory that only the user can read.
fn copies_of<'a>(paths: &[&'a Path], identity: &Identity) -> Result<Vec<(&'a Path, Tree)>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    // Opened before: one may be below the stage.
    let files = paths.iter().map(|path| File::open(path).context(path.display())).collect::<Result<Vec<_>>>()?;
    mount_tmpfs(STAGE, "mode=700")?;
    let copies = paths.iter().zip(files).enumerate().map(|(at, (path, file))| {
        let copy = Path::new(STAGE).join(at.to_string());
        make_copy(file, &copy, identity).context(path.display())?;
        Ok((*path, Tree::open(&copy)?))
    });
    let copies = copies.collect::<Result<Vec<_>>>()?;
    umount2(STAGE, MntFlags::MNT_DETACH).context(STAGE)?;
    Ok(copies)
}

fn make_copy(mut from: File, to: &Path, identity: &Identity) -> io::Result<()> {
    let is_program = from.metadata()?.mode() & 0o111 != 0;
    let mode = if is_program { 0o500 } else { 0o400 };
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(mode).open(to)?;
    io::copy(&mut from, &mut copy)?;
    fchown(&copy, Some(identity.user), Some(identity.group))
}

/// Outer ones first, so that they do not hide inner ones.
fn place(closed: Vec<&Path>, trees: Vec<(&Path, Tree)>) -> Result<()> {
    let covers = closed.iter().map(|path| (*path, None));
    let trees = trees.into_iter().map(|(path, tree)| (path, Some(tree)));
    let mut all: Vec<_> = covers.chain(trees).collect();
    all.sort_by_key(|(path, _)| path.components().count());
    for (path, tree) in &all {
        make_folder(inside(path.parent().unwrap_or(path)))?;
        match tree {
            Some(tree) => tree.place(path)?,
            None => {
                make_folder(inside(path))?;
                mount_tmpfs(inside(path), "mode=755,size=1m")?;
            }
        }
    }
    closed.iter().try_for_each(|path| make_read_only(inside(path)))
}
