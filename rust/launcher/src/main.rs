//! Confines a program and becomes it: an untrusted one, a handler or a compiler, or one of the product.
//!
//! `edge-launcher PLAN PROGRAM ARGUMENT...`, where PLAN is JSON, see `plan.rs`. The environment is passed on as it is.
//! With namespaces the launcher stays as the monitor of the program; otherwise nothing of it is left, but for a child
//! where a program needs somebody who connects to sockets for it.
mod connector;
mod failure;
mod files;
mod filter;
mod limits;
mod monitor;
mod mounts;
mod network;
mod plan;
mod privileges;
mod program;
mod starter;
mod view;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use failure::{Context, Result};
use nix::sys::stat::{Mode, umask};
use plan::Plan;
use program::Program;

/// The exit code when the program was not started; shells have one of their own for each reason, from here on.
const NOT_STARTED: u8 = 125;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn run() -> Result<ExitCode> {
    let (plan, program) = read_arguments(std::env::args_os())?;
    prepare(&plan)?;
    if plan.namespaces.is_some() {
        return monitor::run(&plan, &program);
    }
    die_with_parent(&plan)?;
    // Open until this process is the program, whose they are then.
    let _asking = plan.connects_to().map(|users| connector::start(&plan, users)).transpose()?;
    let _starting = plan.starter().map(|words| starter::start(&plan, words)).transpose()?;
    Err(program.start(&plan, files::allow_on_machine, || expect_parent(&plan)))
}

/// Reads the plan, and which program it is for.
///
/// # Errors
/// The arguments are not what the service passes.
fn read_arguments(mut arguments: impl Iterator<Item = OsString>) -> Result<(Plan, Program)> {
    let plan = arguments.nth(1).ok_or_else(|| failure::of("usage: edge-launcher PLAN PROGRAM ARGUMENT..."))?;
    let plan = serde_json::from_slice(plan.as_encoded_bytes()).context("the plan")?;
    let words = arguments.map(|word| CString::new(word.into_vec())).collect::<std::result::Result<Vec<_>, _>>();
    Ok((plan, Program::new(words.context("an argument")?)?))
}

/// What the monitor of a program has in common with it.
fn prepare(plan: &Plan) -> Result<()> {
    // A program of the service itself makes its files like the service.
    if plan.identity.is_some() || plan.access.is_some() {
        // Also of the folders of its root, which another user enters.
        umask(Mode::from_bits_truncate(0o022));
    }
    limits::join_cgroup(plan.cgroup.as_deref())?;
    plan.nice.map_or(Ok(()), limits::lower_priority)
}

/// Without a parent there is nobody to run a program for.
fn die_with_parent(plan: &Plan) -> Result<()> {
    if plan.parent.is_none() {
        return Ok(());
    }
    privileges::end_with_parent()?;
    expect_parent(plan)
}

fn expect_parent(plan: &Plan) -> Result<()> {
    let parent = nix::unistd::getppid().as_raw();
    if plan.parent.is_none_or(|expected| expected == parent) {
        Ok(())
    } else {
        Err(failure::of("its parent has ended"))
    }
}
