//! Which compiler builds guests, and preparing one where none is ready.
//!
//! In this order: the user's own `rustc`, if it has a WebAssembly target that gives components (rustup's
//! `wasm32-unknown-unknown`, else `wasm32-wasip2`); Debian's compiler, with a standard library built from its
//! sources; and where neither can be had, an error with the line to run. A guest that needs WASI takes the second
//! target only. The facts are gathered first, and `decide` makes one decision of them, so that every case can be
//! tested on any machine.

use std::env;
use std::fs;
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
    /// The folder of the C library that the target is linked with, where the compiler does not bring it.
    pub c_library: Option<PathBuf>,
}

/// Where and how to look for a toolchain.
#[derive(Debug, Clone)]
pub struct Search {
    directory: PathBuf,
    may_install: bool,
    wasi: bool,
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
            Decision::UseOwn(target) => Ok(Self { rustc: own, cargo, target, c_library: None }),
            Decision::UseDebian => Ok(Self::debian(cargo, search)),
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
        Ok(Self::debian(cargo, search))
    }

    fn debian(cargo: PathBuf, search: &Search) -> Self {
        let c_library = search.wasi.then(|| PathBuf::from(DEBIAN_C_LIBRARY));
        Self { rustc: PathBuf::from(DEBIAN_RUSTC), cargo, target: search.best_target(), c_library }
    }
}

impl Search {
    /// A search for the crate or workspace in a folder. A `rust-toolchain.toml` there chooses rustup's toolchain;
    /// `wasi = true` in its Cargo.toml, under `[package.metadata.millstream]` or `[workspace.metadata.millstream]`,
    /// says that it needs what the standard library has through WASI: clocks, random numbers, standard output.
    ///
    /// `may_install`: whether packages may be installed and the standard library built, where this process is root on
    /// Debian.
    pub fn new(directory: &Path, may_install: bool) -> Self {
        // A manifest that cannot be read is for cargo to complain about.
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
        Self { directory: directory.to_owned(), may_install, wasi: wants_wasi(&manifest) }
    }

    /// Whether the guest is built for WASI.
    pub fn wasi(&self) -> bool {
        self.wasi
    }

    /// Targets that would do, the best one first.
    fn targets(&self) -> &'static [Target] {
        if self.wasi { &[Target::Wasip2] } else { &[Target::UnknownUnknown, Target::Wasip2] }
    }

    fn best_target(&self) -> Target {
        self.targets()[0]
    }

    fn debian_packages(&self) -> Packages {
        let c_library = self.wasi.then_some(DEBIAN_C_LIBRARY_PACKAGE);
        Packages::new(DEBIAN_PACKAGES.into_iter().chain(c_library).collect::<Vec<_>>())
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
    search: Search,
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
        let own_target = search.targets().iter().copied().find(has);
        let debian =
            (own_target.is_none() && debian::running_on_debian()).then(|| DebianFacts::gather(search));
        Self { own_target, debian, search: search.clone() }
    }
}

impl DebianFacts {
    fn gather(search: &Search) -> Self {
        let standard_library =
            StandardLibrary::of(Path::new(DEBIAN_RUSTC), &search.directory, search.best_target())
                .map_or(Readiness::Missing, |library| library.readiness());
        Self {
            root: debian::running_as_root(),
            missing: search.debian_packages().missing(),
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
        let targets: Vec<_> = facts.search.targets().iter().map(|target| target.triple()).collect();
        return Decision::Refuse {
            found: format!("rustc has not the target {}", targets.join(" and neither ")),
            remedy: format!("Run `{}`.", rustup_line(&facts.search)),
        };
    };
    if debian.missing.is_empty() && debian.standard_library == Readiness::Ready {
        return Decision::UseDebian;
    }
    if debian.root && facts.search.may_install && debian.conflicting.is_none() {
        return Decision::Prepare { packages: debian.missing.clone() };
    }
    refuse_on_debian(debian, &facts.search)
}

fn refuse_on_debian(debian: &DebianFacts, search: &Search) -> Decision {
    let found = match (&debian.conflicting, debian.standard_library) {
        (Some(package), _) => {
            format!("rustc lacks the target, and the package {package} excludes the one that could build it")
        }
        (None, Readiness::Outdated) => {
            "Debian's rustc has another version than its WebAssembly standard library".to_owned()
        }
        (None, _) => {
            format!("neither rustup nor Debian's rustc has the target {}", search.best_target().triple())
        }
    };
    let install = search.debian_packages().install_line();
    let install = match debian.conflicting {
        Some(package) => format!("apt-get remove {package} && {install}"),
        None => install,
    };
    let remedy = format!(
        "Run `{}`; or, where rustup cannot fetch it, run as root `{install}` and then, once as root, this command \
         again, which builds the standard library.",
        rustup_line(search)
    );
    Decision::Refuse { found, remedy }
}

fn rustup_line(search: &Search) -> String {
    format!("rustup target add {}", search.best_target().triple())
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
    let target = search.best_target();
    let library = StandardLibrary::of(rustc, &search.directory, target).map_err(ToolchainError::Compiler)?;
    if library.readiness() != Readiness::Ready {
        library.build(rustc, cargo, target, &Path::new(WORK).join("std"), progress)?;
    }
    Ok(())
}

fn wants_wasi(manifest: &str) -> bool {
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    ["package", "workspace"].into_iter().any(|section| {
        let metadata = manifest.get(section).and_then(|section| section.get("metadata"));
        let wasi = metadata.and_then(|metadata| metadata.get("millstream")?.get("wasi"));
        wasi.and_then(toml::Value::as_bool).unwrap_or(false)
    })
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
/// The C library for WASI, which the standard library calls.
const DEBIAN_C_LIBRARY_PACKAGE: &str = "wasi-libc";
const DEBIAN_C_LIBRARY: &str = "/usr/lib/wasm32-wasi";

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
        Facts { own_target: None, debian, search: search(false) }
    }

    fn search(wasi: bool) -> Search {
        Search { directory: PathBuf::new(), may_install: true, wasi }
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
        let search = Search { may_install: false, ..search(false) };
        assert_eq!(decide(&Facts { search, ..on(Some(debian)) }), Decision::UseDebian);
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
        let forbidden = Search { may_install: false, ..search(false) };
        let forbidden = Facts { search: forbidden, ..on(Some(bare_debian())) };
        assert!(remedy(&forbidden).contains("rustup target add"));
    }

    #[test]
    fn a_guest_with_wasi_needs_its_target_and_a_c_library() {
        let bare = Facts { search: search(true), ..on(None) };
        assert_eq!(remedy(&bare), "Run `rustup target add wasm32-wasip2`.");
        let user = Facts { debian: Some(DebianFacts { root: false, ..bare_debian() }), ..bare };
        let remedy = remedy(&user);
        assert!(remedy.contains("lld-22 wasi-libc`") && remedy.contains("wasm32-wasip2"), "{remedy}");
    }

    #[test]
    fn a_crate_says_in_its_manifest_that_it_needs_wasi() {
        assert!(wants_wasi("[package]\nname = \"a\"\n[package.metadata.millstream]\nwasi = true"));
        assert!(wants_wasi("[workspace]\nmetadata.millstream = { wasi = true }"));
        for without in
            ["", "[package]\nname = \"a\"", "[package.metadata.millstream]\nwasi = false", "not toml"]
        {
            assert!(!wants_wasi(without), "{without}");
        }
    }

    #[test]
    fn a_package_of_the_users_is_never_removed() {
        let debian = DebianFacts { conflicting: Some("rustc"), ..bare_debian() };
        assert!(remedy(&on(Some(debian))).contains("apt-get remove rustc &&"));
    }
}
