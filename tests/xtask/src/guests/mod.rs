//! `cargo xtask guests`: builds every guest into a component.
//!
//! Rust guests are what the product needs; those in C and JavaScript against the bare interface show that it is not made
//! for Rust, and each SDK has projects of its own. Where their compilers are missing and cannot be installed, they are left out, which is said, and which
//! fails where the run decides about a change.

pub(crate) mod c;
mod javascript;
mod output;
mod projects;
mod rust;

use std::panic::resume_unwind;
use std::thread;
use std::time::Instant;

use anyhow::{Error, Result, bail};
use millstream_guest_build::{Packages, running_as_root, running_on_debian};

use crate::printer::{self, Printer};
use crate::workspace::Workspace;
use output::{Guest, Output};

/// Guests that were left out, and why.
#[derive(Debug, Default)]
pub(crate) struct LeftOut(Vec<String>);

impl LeftOut {
    /// Says what was left out.
    ///
    /// # Errors
    /// When there is something and the run decides about a change.
    pub(crate) fn report(&self, workspace: &Workspace, printer: &Printer) -> Result<()> {
        for reason in &self.0 {
            printer.progress(format_args!("left out: {reason}"));
        }
        if workspace.ci && !self.0.is_empty() {
            bail!("guests were left out, which counts as failed where CI=true");
        }
        Ok(())
    }
}

/// What one language's build comes to.
#[derive(Default)]
struct Built {
    guests: Vec<Guest>,
    left_out: Option<String>,
    failed: Vec<Error>,
}

impl Built {
    fn of(guests: Vec<Guest>) -> Self {
        Self { guests, ..Self::default() }
    }

    fn left_out(reason: impl Into<String>) -> Self {
        Self { left_out: Some(reason.into()), ..Self::default() }
    }

    fn failed(error: Error) -> Self {
        Self { failed: vec![error], ..Self::default() }
    }

    fn add(&mut self, guest: Result<Guest>) {
        match guest {
            Ok(guest) => self.guests.push(guest),
            Err(error) => self.failed.push(error),
        }
    }
}

/// Builds all guests and prints name, size and time of each. One that fails keeps no other from being built.
///
/// # Errors
/// When one could not be built.
pub(crate) fn build_all(workspace: &Workspace, printer: &Printer) -> Result<LeftOut> {
    let start = Instant::now();
    let output = Output::open(workspace)?;
    output.link_from_repository(workspace)?;
    let mut left_out = LeftOut::default();
    let mut failed = 0;
    for built in build_languages(workspace, &output, printer) {
        built.guests.iter().for_each(|guest| printer.result(guest));
        built.failed.iter().for_each(|error| printer.error(error));
        left_out.0.extend(built.left_out);
        failed += built.failed.len();
    }
    if failed > 0 {
        bail!("{failed} guests or folders of guests did not build; the errors are above");
    }
    left_out.report(workspace, printer)?;
    let folder = output.folder().display();
    printer.progress(format_args!("guests are in {folder} ({})", printer::seconds(start.elapsed())));
    Ok(left_out)
}

/// Rust's build keeps the cores busy by itself; the others mostly wait for downloads.
fn build_languages(workspace: &Workspace, output: &Output, printer: &Printer) -> Vec<Built> {
    let settle = |built: Result<Built>| built.unwrap_or_else(Built::failed);
    thread::scope(|scope| {
        let others = scope.spawn(|| {
            let bare = [c::build(workspace, output, printer), javascript::build(workspace, output, printer)]
                .map(settle);
            let projects = projects::build(workspace, output, printer).into_iter().map(settle);
            bare.into_iter().chain(projects).collect::<Vec<_>>()
        });
        let rust = settle(rust::build(workspace, output, printer));
        let others = others.join().unwrap_or_else(|panic| resume_unwind(panic));
        [rust].into_iter().chain(others).collect()
    })
}

/// Makes packages be there: installs them as root on Debian, else says what to run.
fn require(packages: &Packages, printer: &Printer) -> Result<Option<String>> {
    let missing = if running_on_debian() { packages.missing() } else { return Ok(None) };
    if missing.is_empty() {
        return Ok(None);
    }
    if !running_as_root() {
        return Ok(Some(format!("run `sudo {}`", missing.install_line())));
    }
    missing.install(&|step| printer.progress(step))?;
    Ok(None)
}
