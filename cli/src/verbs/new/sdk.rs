//! Where a new crate gets the SDK from.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::exit::Failure;

/// The SDK's sources and the interface that it is made of, by their paths in the repository.
pub(super) const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sdk_sources.rs"));

/// The SDK's folder in the repository.
const CRATE: &str = "guest-sdk/rust";

/// Where the SDK comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sdk {
    /// Its sources go into the project.
    Vendored,
    /// The crate in this folder.
    Folder(PathBuf),
}

impl Sdk {
    /// The folder that was named on the command line or by `MILLSTREAM_SDK`, else the sources in this program.
    pub(super) fn find(named: Option<&Path>) -> Result<Self, Failure> {
        let variable = || env::var_os("MILLSTREAM_SDK").filter(|value| !value.is_empty()).map(PathBuf::from);
        match named.map(Path::to_owned).or_else(variable) {
            Some(folder) => Self::in_folder(&folder),
            None => Ok(Self::Vendored),
        }
    }

    /// The SDK's crate or the repository around it.
    fn in_folder(folder: &Path) -> Result<Self, Failure> {
        let candidates = [folder.to_owned(), folder.join(CRATE)];
        let is_sdk = |folder: &&PathBuf| {
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
            manifest.contains("name = \"millstream-sdk\"")
        };
        match candidates.iter().find(is_sdk).map(|folder| folder.canonicalize()) {
            Some(Ok(folder)) => Ok(Self::Folder(folder)),
            _ => Err(Failure::environment(miette::miette!(
                help = "expected the folder of the crate `millstream-sdk` or the repository that it is in; without \
                        `--sdk` and MILLSTREAM_SDK the SDK's sources are put into the project",
                "there is no Millstream SDK in {}",
                folder.display()
            ))),
        }
    }

    /// The path of the dependency in the project's `Cargo.toml`.
    pub(super) fn dependency(&self) -> String {
        match self {
            Self::Vendored => format!("{VENDORED}/{CRATE}"),
            Self::Folder(folder) => folder.display().to_string(),
        }
    }
}

/// The folder of a project with the SDK's sources, laid out as in the repository.
pub(super) const VENDORED: &str = ".millstream";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_the_sdk_is_compiled_from_is_embedded() {
        let has = |path: &str| SOURCES.iter().any(|(name, text)| *name == path && !text.is_empty());
        for path in [
            "guest-sdk/rust/Cargo.toml",
            "guest-sdk/rust/src/lib.rs",
            "guest-sdk/rust/src/host/wasm.rs",
            "guest-sdk/rust/macros/Cargo.toml",
            "guest-sdk/rust/macros/src/lib.rs",
            "wit/function.wit",
        ] {
            assert!(has(path), "{path} is missing");
        }
        assert!(!SOURCES.iter().any(|(name, _)| name.contains("/tests/") || name.contains("/target/")));
        let size: usize = SOURCES.iter().map(|(_, text)| text.len()).sum();
        assert!(size < 1 << 20, "the SDK takes {size} bytes of the program");
    }

    #[test]
    fn a_folder_may_be_the_crate_or_the_repository() {
        let root = tempfile::tempdir().expect("a folder");
        let sdk = root.path().join(CRATE);
        assert!(Sdk::in_folder(root.path()).is_err());
        std::fs::create_dir_all(&sdk).expect("a folder in it");
        std::fs::write(sdk.join("Cargo.toml"), "[package]\nname = \"millstream-sdk\"\n")
            .expect("a file in it");
        let found = Sdk::Folder(sdk.canonicalize().expect("it is there"));
        assert_eq!(Sdk::in_folder(root.path()).expect("found"), found);
        assert_eq!(Sdk::in_folder(&sdk).expect("found"), found);
    }
}
