//! The last steps: the process loses its rights, one after the other, and becomes the program.
use std::convert::Infallible;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::{chdir, execvp, fexecve};

use crate::failure::{self, Context, Failure, Result};
use crate::files::Restriction;
use crate::plan::{Access, Plan};
use crate::{filter, limits, privileges, view};

/// How long a program that is open for writing is tried again, and how often. The service has just written it, and has
/// closed it; but a process that it has forked meanwhile has it until it executes another program.
const BUSY_LIMIT: Duration = Duration::from_secs(2);
const BUSY_RETRY: Duration = Duration::from_millis(1);

pub struct Program {
    /// The path of the program, or its name, which is looked up in PATH; and its arguments.
    words: Vec<CString>,
}

impl Program {
    /// # Errors
    /// There is none.
    pub fn new(words: Vec<CString>) -> Result<Self> {
        if words.is_empty() { Err(failure::of("no program is named")) } else { Ok(Self { words }) }
    }

    /// Becomes the program, and returns why it could not. `allow` makes the restriction of files, with the rights of
    /// the launcher; `expect_parent` fails when there is nobody any more to run the program for.
    pub fn start(
        &self,
        plan: &Plan,
        allow: impl FnOnce(&Access) -> Result<Restriction>,
        expect_parent: impl FnOnce() -> Result<()>,
    ) -> Failure {
        match self.try_to_start(plan, allow, expect_parent) {
            Err(failure) => failure,
            Ok(never) => match never {},
        }
    }

    fn try_to_start(
        &self,
        plan: &Plan,
        allow: impl FnOnce(&Access) -> Result<Restriction>,
        expect_parent: impl FnOnce() -> Result<()>,
    ) -> Result<Infallible> {
        limits::close_descriptors_from(plan.descriptors())?;
        // Root may raise a limit that it has itself.
        plan.limits.as_ref().map_or(Ok(()), limits::set)?;
        if let (Some(process), Some(identity)) = (&plan.process, &plan.identity) {
            view::enter(&process.needs, identity)?;
        }
        let file = self.open();
        let restriction = plan.access.as_ref().map(allow).transpose()?;
        if plan.gives_up_rights() {
            privileges::drop_all_but(plan.kept_capabilities(), plan.identity.as_ref())?;
        }
        if plan.parent.is_some() {
            // A change of user cancels it; the parent may have ended since.
            privileges::end_with_parent()?;
        }
        expect_parent()?;
        match chdir(&plan.cwd) {
            // A program of the product needs no folder: somebody was in one that is closed to its user.
            Err(_) if plan.process.is_some() => chdir("/").context("/")?,
            changed => changed.context(plan.cwd.display())?,
        }
        privileges::never_gain_any()?;
        if let (Some(access), Some(restriction)) = (&plan.access, restriction) {
            restriction.enforce()?;
            filter::install(plan, access.network)?;
        }
        if plan.process.is_some() && plan.identity.is_some() {
            filter::install_for_process()?;
        }
        if let Some(own) = &plan.own {
            privileges::leave_terminal()?;
            filter::install_for_own(own.sockets)?;
        }
        self.execute(file)
    }

    /// Opens the file with the rights of the launcher: the user of the program may not be able to reach it, as below
    /// `/root`.
    fn open(&self) -> Option<OwnedFd> {
        open(self.words[0].as_c_str(), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()
    }

    fn execute(&self, opened: Option<OwnedFd>) -> Result<Infallible> {
        let file = &self.words[0];
        let began = Instant::now();
        let outcome = loop {
            match execvp(file, &self.words) {
                Err(Errno::ETXTBSY) if began.elapsed() < BUSY_LIMIT => sleep(BUSY_RETRY),
                outcome => break outcome,
            }
        };
        match (outcome, opened) {
            (Err(Errno::EACCES), Some(opened)) => fexecve(opened, &self.words, &environment()?),
            (outcome, _) => outcome,
        }
        .context(file.to_string_lossy())
    }
}

fn environment() -> Result<Vec<CString>> {
    let variables = std::env::vars_os().map(|(name, value)| {
        let variable = [name.into_vec(), value.into_vec()].join(&b'=');
        CString::new(variable).context("a variable")
    });
    variables.collect()
}
