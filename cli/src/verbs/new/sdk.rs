//! Where a new project gets the SDK of its language from.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::language::Language;
use crate::exit::Failure;

/// The SDKs' sources and the interface that they are made of, by their paths in the repository.
const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sdk_sources.rs"));

/// Where the SDK comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sdk {
    /// Its sources go into the project.
    Vendored,
    /// The one in this folder.
    Folder(PathBuf),
}

impl Sdk {
    /// The folder that was named on the command line or by `MILLSTREAM_SDK`, else the sources in this program.
    pub(super) fn find(language: Language, named: Option<&Path>) -> Result<Self, Failure> {
        let variable = || env::var_os("MILLSTREAM_SDK").filter(|value| !value.is_empty()).map(PathBuf::from);
        match named.map(Path::to_owned).or_else(variable) {
            Some(folder) => Self::in_folder(language, &folder),
            None => Ok(Self::Vendored),
        }
    }

    /// The SDK or the repository around it.
    fn in_folder(language: Language, folder: &Path) -> Result<Self, Failure> {
        let candidates = [folder.to_owned(), folder.join(language.sdk())];
        let (file, word) = language.sdk_marker();
        let is_sdk = |folder: &&PathBuf| {
            std::fs::read_to_string(folder.join(file)).is_ok_and(|text| text.contains(word))
        };
        match candidates.iter().find(is_sdk).map(|folder| folder.canonicalize()) {
            Some(Ok(folder)) => Ok(Self::Folder(folder)),
            _ => Err(Failure::environment(miette::miette!(
                help = format!(
                    "expected the repository or its folder {}; without `--sdk` and MILLSTREAM_SDK the SDK's sources \
                     are put into the project",
                    language.sdk()
                ),
                "there is no Millstream SDK for {} in {}",
                language.name(),
                folder.display()
            ))),
        }
    }

    /// The path of the SDK as the project names it.
    pub(super) fn dependency(&self, language: Language) -> String {
        match self {
            Self::Vendored => format!("{VENDORED}/{}", language.sdk()),
            Self::Folder(folder) => folder.display().to_string(),
        }
    }
}

/// What the SDK of a language is made of: paths in the repository, with the texts.
pub(super) fn sources(language: Language) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let sdk = format!("{}/", language.sdk());
    SOURCES.iter().filter(move |(path, _)| path.starts_with(&sdk) || path.starts_with("wit/"))
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
            "guest-sdk/python/src/millstream/testing/__init__.py",
            "wit/function.wit",
        ] {
            assert!(has(path), "{path} is missing");
        }
        assert!(!SOURCES.iter().any(|(name, _)| name.contains("/tests/") || name.contains("/target/")));
        assert!(has("guest-sdk/javascript/src/index.d.ts") && has("guest-sdk/javascript/package.json"));
        let size: usize = SOURCES.iter().map(|(_, text)| text.len()).sum();
        assert!(size < 2 << 20, "the SDK takes {size} bytes of the program");
    }

    #[test]
    fn a_folder_may_be_the_crate_or_the_repository() {
        let root = tempfile::tempdir().expect("a folder");
        let (language, sdk) = (Language::Rust, root.path().join(Language::Rust.sdk()));
        assert!(Sdk::in_folder(language, root.path()).is_err());
        std::fs::create_dir_all(&sdk).expect("a folder in it");
        std::fs::write(sdk.join("Cargo.toml"), "[package]\nname = \"millstream-sdk\"\n")
            .expect("a file in it");
        let found = Sdk::Folder(sdk.canonicalize().expect("it is there"));
        assert_eq!(Sdk::in_folder(language, root.path()).expect("found"), found);
        assert_eq!(Sdk::in_folder(language, &sdk).expect("found"), found);
    }
}
