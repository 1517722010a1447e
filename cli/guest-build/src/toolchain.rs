//! Which compiler builds guests, and preparing one where none is ready.
//!
//! In this order: the user's own `rustc`, if it has a WebAssembly target that gives components (rustup's
//! `wasm32-unknown-unknown`, else `wasm32-wasip2`); Debian's compiler, with a standard library built from its
//! sources; and where neither can be had, an error with the line to run. The facts are gathered first, and
//! `decide` makes one decision of them, so that every case can be tested on any machine.

use std::env;
use std::path::{Path, PathBuf};

use crate::debian::{self, PackageError, Packages};
use crate::lock::{LockError, PreparationLock};
use crate::progress::Progress;
use crate::run::CommandError;
use crate::standard_library::{Readiness, StandardLibrary, StandardLibraryError};

/// A compiler that is ready to build guests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// The cargo that drives it; it need not be of the compiler's version.
    pub cargo: PathBuf,
    /// What it compiles to.
    pub target: Target,
}

/// Where and how to look for a toolchain.
#[derive(Debug, Clone)]
pub struct Search {
    /// The folder of the crate to be built: a `rust-toolchain.toml` there chooses rustup's toolchain.
    pub directory: PathBuf,
    /// Whether packages may be installed and the standard library built, where this process is root on Debian.
    pub may_install: bool,
}

/// A Rust target that gives components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `wasm32-unknown-unknown`: a core module without WASI, made a component afterwards.
    UnknownUnknown,
    /// `wasm32-wasip2`: its linker makes a component that imports WASI.
    Wasip2,
}

/// There is no compiler for guests, and none could be prepared.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// Neither rustup's nor Debian's compiler can build for WebAssembly, and this process may not change that.
    #[error("no Rust compiler for WebAssembly found: {found}.\n{remedy}")]
    NotFound {
        /// What was found instead.
        found: String,
        /// What to run.
        remedy: String,
    },
    /// The right to prepare a compiler could not be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Packages could not be installed.
    #[error(transparent)]
    Packages(#[from] PackageError),
    /// The standard library could not be built.
    #[error("could not build the standard library for WebAssembly")]
    StandardLibrary(#[from] StandardLibraryError),
    /// The compiler that was just installed does not answer.
    #[error("Debian's compiler does not answer")]
    Compiler(#[source] CommandError),
}

impl Toolchain {
    /// Finds a compiler for guests, or prepares one: as root on Debian, and if the search allows it, by installing
    /// packages and building the standard library, which takes minutes the first time.
    ///
    /// # Errors
    /// When there is none and none can be prepared; the text holds the line to run.
    pub fn find(search: &Search, progress: Progress<'_>) -> Result<Self, ToolchainError> {
        let cargo = program("CARGO", "cargo");
        let own = program("RUSTC", "rustc");
        let facts = Facts::gather(&own, search);
        match decide(&facts) {
            Decision::UseOwn(target) => Ok(Self { rustc: own, cargo, target }),
            Decision::UseDebian => Ok(Self::debian(cargo)),
            Decision::Prepare { .. } => Self::prepare(own, cargo, search, progress),
            Decision::Refuse { found, remedy } => Err(ToolchainError::NotFound { found, remedy }),
        }
    }

    /// Prepares what is missing, under the lock; another build may have done so while this one waited for it.
    fn prepare(
        own: PathBuf,
        cargo: PathBuf,
        search: &Search,
        progress: Progress<'_>,
    ) -> Result<Self, ToolchainError> {
        let _lock = PreparationLock::take(Path::new(WORK), progress)?;
        if let Decision::Prepare { packages } = decide(&Facts::gather(&own, search)) {
            prepare_debian(&packages, &cargo, search, progress)?;
        }
        Ok(Self::debian(cargo))
    }

    fn debian(cargo: PathBuf) -> Self {
        Self { rustc: PathBuf::from(DEBIAN_RUSTC), cargo, target: Target::UnknownUnknown }
    }
}

impl Target {
    /// Its name for rustc.
    pub fn triple(self) -> &'static str {
        match self {
            Self::UnknownUnknown => "wasm32-unknown-unknown",
            Self::Wasip2 => "wasm32-wasip2",
        }
    }
}

/// What this machine has.
#[derive(Debug, Clone)]
struct Facts {
    /// The best target of the user's own compiler.
    own_target: Option<Target>,
    debian: Option<DebianFacts>,
    may_install: bool,
}

#[derive(Debug, Clone)]
struct DebianFacts {
    root: bool,
    missing: Packages,
    /// A package that apt would have to remove to install the compiler.
    conflicting: Option<&'static str>,
    standard_library: Readiness,
}

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    UseOwn(Target),
    UseDebian,
    /// Install what is missing, then build the standard library.
    Prepare {
        packages: Packages,
    },
    Refuse {
        found: String,
        remedy: String,
    },
}

impl Facts {
    fn gather(own: &Path, search: &Search) -> Self {
        let has = |target: &Target| {
            StandardLibrary::of(own, &search.directory, *target)
                .is_ok_and(|library| library.readiness() == Readiness::Ready)
        };
        let own_target = [Target::UnknownUnknown, Target::Wasip2].into_iter().find(has);
        let debian =
            (own_target.is_none() && debian::running_on_debian()).then(|| DebianFacts::gather(search));
        Self { own_target, debian, may_install: search.may_install }
    }
}

impl DebianFacts {
    fn gather(search: &Search) -> Self {
        let standard_library =
            StandardLibrary::of(Path::new(DEBIAN_RUSTC), &search.directory, Target::UnknownUnknown)
                .map_or(Readiness::Missing, |library| library.readiness());
        Self {
            root: debian::running_as_root(),
            missing: Packages::new(DEBIAN_PACKAGES).missing(),
            conflicting: CONFLICTING.into_iter().find(|name| debian::is_installed(name)),
            standard_library,
        }
    }
}

fn decide(facts: &Facts) -> Decision {
    if let Some(target) = facts.own_target {
        return Decision::UseOwn(target);
    }
    let Some(debian) = &facts.debian else {
        return Decision::Refuse {
            found: "rustc has neither of the targets wasm32-unknown-unknown and wasm32-wasip2".to_owned(),
            remedy: format!("Run `{RUSTUP_LINE}`."),
        };
    };
    if debian.missing.is_empty() && debian.standard_library == Readiness::Ready {
        return Decision::UseDebian;
    }
    if debian.root && facts.may_install && debian.conflicting.is_none() {
        return Decision::Prepare { packages: debian.missing.clone() };
    }
    refuse_on_debian(debian)
}

fn refuse_on_debian(debian: &DebianFacts) -> Decision {
    let found = match (&debian.conflicting, debian.standard_library) {
        (Some(package), _) => {
            format!("rustc lacks the target, and the package {package} excludes the one that could build it")
        }
        (None, Readiness::Outdated) => {
            "Debian's rustc has another version than its WebAssembly standard library".to_owned()
        }
        (None, _) => "neither rustup nor Debian's rustc has the target wasm32-unknown-unknown".to_owned(),
    };
    let install = match debian.conflicting {
        Some(package) => {
            format!("apt-get remove {package} && {}", Packages::new(DEBIAN_PACKAGES).install_line())
        }
        None => Packages::new(DEBIAN_PACKAGES).install_line(),
    };
    let remedy = format!(
        "Run `{RUSTUP_LINE}`; or, where rustup cannot fetch it, run as root `{install}` and then, once as root, \
         this command again, which builds the standard library."
    );
    Decision::Refuse { found, remedy }
}

fn prepare_debian(
    packages: &Packages,
    cargo: &Path,
    search: &Search,
    progress: Progress<'_>,
) -> Result<(), ToolchainError> {
    if !packages.is_empty() {
        packages.install(progress)?;
    }
    let rustc = Path::new(DEBIAN_RUSTC);
    let target = Target::UnknownUnknown;
    let library = StandardLibrary::of(rustc, &search.directory, target).map_err(ToolchainError::Compiler)?;
    if library.readiness() != Readiness::Ready {
        library.build(rustc, cargo, target, &Path::new(WORK).join("std"), progress)?;
    }
    Ok(())
}

/// A program named by an environment variable, as cargo does for what it runs, or by its plain name.
fn program(variable: &str, name: &str) -> PathBuf {
    env::var_os(variable).filter(|value| !value.is_empty()).map_or_else(|| PathBuf::from(name), PathBuf::from)
}

/// Only root prepares anything, so that a fixed place is no door for others.
const WORK: &str = "/var/cache/millstream/guest-toolchain";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// The compiler that Debian keeps current for browsers, its linker (whose version follows the compiler's LLVM),
/// and the sources of its standard library.
const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "rust-web-llvm", "rust-web-src", "lld-22"];
const CONFLICTING: [&str; 3] = ["rustc", "rustc-mozilla", "rustup"];
const RUSTUP_LINE: &str = "rustup target add wasm32-unknown-unknown";

#[cfg(test)]
mod tests {
    use super::*;

    fn bare_debian() -> DebianFacts {
        DebianFacts {
            root: true,
            missing: Packages::new(DEBIAN_PACKAGES),
            conflicting: None,
            standard_library: Readiness::Missing,
        }
    }

    fn prepared_debian() -> DebianFacts {
        DebianFacts { missing: Packages::new([]), standard_library: Readiness::Ready, ..bare_debian() }
    }

    fn on(debian: Option<DebianFacts>) -> Facts {
        Facts { own_target: None, debian, may_install: true }
    }

    fn remedy(facts: &Facts) -> String {
        match decide(facts) {
            Decision::Refuse { remedy, .. } => remedy,
            other => panic!("should have refused, but decided {other:?}"),
        }
    }

    #[test]
    fn the_users_own_compiler_comes_first() {
        for target in [Target::UnknownUnknown, Target::Wasip2] {
            let facts = Facts { own_target: Some(target), ..on(Some(prepared_debian())) };
            assert_eq!(decide(&facts), Decision::UseOwn(target));
        }
    }

    #[test]
    fn a_prepared_debian_needs_neither_root_nor_permission() {
        let debian = DebianFacts { root: false, ..prepared_debian() };
        assert_eq!(decide(&Facts { may_install: false, ..on(Some(debian)) }), Decision::UseDebian);
    }

    #[test]
    fn root_on_debian_prepares_what_is_missing() {
        let all = Decision::Prepare { packages: Packages::new(DEBIAN_PACKAGES) };
        assert_eq!(decide(&on(Some(bare_debian()))), all);
        let outdated = DebianFacts { standard_library: Readiness::Outdated, ..prepared_debian() };
        assert_eq!(decide(&on(Some(outdated))), Decision::Prepare { packages: Packages::new([]) });
    }

    #[test]
    fn others_are_told_the_line_to_run() {
        assert_eq!(remedy(&on(None)), "Run `rustup target add wasm32-unknown-unknown`.");
        let user = remedy(&on(Some(DebianFacts { root: false, ..bare_debian() })));
        assert!(
            user.contains("apt-get install -y --no-install-recommends rustc-web rust-web-llvm"),
            "{user}"
        );
        let forbidden = Facts { may_install: false, ..on(Some(bare_debian())) };
        assert!(remedy(&forbidden).contains("rustup target add"));
    }

    #[test]
    fn a_package_of_the_users_is_never_removed() {
        let debian = DebianFacts { conflicting: Some("rustc"), ..bare_debian() };
        assert!(remedy(&on(Some(debian))).contains("apt-get remove rustc &&"));
    }
}
