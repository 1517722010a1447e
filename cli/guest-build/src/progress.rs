//! What a build is doing at the moment, for whoever shows it.

use std::fmt;
use std::path::PathBuf;

/// Receives each [`Step`] as it begins. Steps are few and some take minutes, so each deserves a line of its own.
pub type Progress<'a> = &'a (dyn Fn(&Step) + Sync);

/// One step of a build that has just begun. Its `Display` is a line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Another build prepares the compiler; this one waits for it.
    WaitingForLock {
        /// The file that the other build holds locked.
        lock: PathBuf,
    },
    /// `apt-get` reads its package lists.
    UpdatingPackageLists,
    /// `apt-get` installs packages.
    InstallingPackages {
        /// Their names.
        packages: Vec<String>,
    },
    /// The standard library is compiled for WebAssembly, which is needed once for each version of the compiler.
    BuildingStandardLibrary {
        /// The compiler's version, as in `rustc 1.96.0`.
        compiler: String,
    },
    /// Cargo compiles a crate or workspace.
    Compiling {
        /// Its folder.
        directory: PathBuf,
    },
    /// A core module becomes a component.
    Componentizing {
        /// The module's name.
        module: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WaitingForLock { lock } => {
                write!(f, "waiting for another build that prepares the compiler ({})", lock.display())
            }
            Self::UpdatingPackageLists => write!(f, "updating the package lists (apt-get update)"),
            Self::InstallingPackages { packages } => write!(f, "installing {}", packages.join(" ")),
            Self::BuildingStandardLibrary { compiler } => {
                write!(
                    f,
                    "building the standard library for WebAssembly with {compiler} (once, about a minute)"
                )
            }
            Self::Compiling { directory } => write!(f, "compiling {}", directory.display()),
            Self::Componentizing { module } => write!(f, "making a component of {module}"),
        }
    }
}
