//! Debian's packages: which are missing, and installing them where we may.

use std::fs;
use std::process::Command;

use crate::progress::{Progress, Step};
use crate::run::{self, CommandError};

/// Some packages that belong together, as the compiler and its linker do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages(Vec<&'static str>);

/// `apt-get` was not able to install.
#[derive(Debug, thiserror::Error)]
#[error("could not install packages; what would have to work: `{line}`")]
pub struct PackageError {
    /// The line that failed.
    pub line: String,
    /// How it failed.
    pub source: CommandError,
}

impl Packages {
    /// These packages, by their names.
    pub fn new(names: impl Into<Vec<&'static str>>) -> Self {
        Self(names.into())
    }

    /// Those of them that are not installed.
    pub fn missing(&self) -> Self {
        Self(self.0.iter().copied().filter(|name| !is_installed(name)).collect())
    }

    /// Whether there is no package in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The line that installs them.
    pub fn install_line(&self) -> String {
        format!("apt-get {} {}", INSTALL.join(" "), self.0.join(" "))
    }

    /// Installs them. Package lists are updated only if it fails without, as that takes longer than many an
    /// installation.
    ///
    /// # Errors
    /// When `apt-get` fails the second time too.
    pub fn install(&self, progress: Progress<'_>) -> Result<(), PackageError> {
        let packages = self.0.iter().map(|&name| name.to_owned()).collect();
        progress(&Step::InstallingPackages { packages });
        if self.try_install().is_ok() {
            return Ok(());
        }
        progress(&Step::UpdatingPackageLists);
        run::capture(&mut apt_get(&["update"]))
            .and_then(|_| self.try_install())
            .map_err(|source| PackageError { line: self.install_line(), source })
    }

    fn try_install(&self) -> Result<(), CommandError> {
        run::capture(apt_get(INSTALL).args(&self.0)).map(drop)
    }
}

/// Whether this machine is a Debian one. Those derived from it lack the packages that we ask for.
pub fn running_on_debian() -> bool {
    fs::read_to_string("/etc/os-release").is_ok_and(|release| names_debian(&release))
}

/// Whether this process may install packages.
#[cfg(unix)]
pub fn running_as_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // Who owns a process's folder is who it runs as; asking the kernel directly would take unsafe code.
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Whether this process may install packages.
#[cfg(not(unix))]
pub fn running_as_root() -> bool {
    false
}

/// Whether dpkg has the package fully installed.
pub(crate) fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status}", package]);
    run::capture_text(&mut query).is_ok_and(|status| status == "installed")
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    // A question on the terminal would be one that nobody sees.
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "DPkg::Lock::Timeout=300"]).args(arguments);
    command
}

fn names_debian(os_release: &str) -> bool {
    os_release.lines().any(|line| matches!(line.trim(), "ID=debian" | "ID=\"debian\""))
}

const INSTALL: &[&str] = &["install", "-y", "--no-install-recommends"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_debian_itself_counts() {
        assert!(names_debian("NAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID=\"12\"\n"));
        assert!(!names_debian("NAME=Ubuntu\nID=ubuntu\nID_LIKE=debian\n"));
    }

    #[test]
    fn the_line_is_one_to_copy() {
        let packages = Packages::new(["lld-22", "rustc-web"]);
        assert_eq!(packages.install_line(), "apt-get install -y --no-install-recommends lld-22 rustc-web");
    }

    #[test]
    fn an_unknown_package_is_missing() {
        let packages = Packages::new(["no-such-package-here"]);
        assert_eq!(packages.missing(), packages);
    }
}
