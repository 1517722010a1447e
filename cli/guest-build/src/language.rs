//! The languages of functions: which one a project is in, and what building it comes to.
//!
//! A project says by a file which language it is in, one that the language's own tools know: `Cargo.toml`,
//! `pyproject.toml`, `package.json`; C has none, so that there it is `millstream.toml`. What builds it is the
//! language's own compiler, which has to be there; the interface definition is part of this crate.

mod c;
mod javascript;
mod python;
mod tool;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cargo::{self, BuildError, BuildOptions, BuiltModule};
use crate::component::{self, ComponentError};
use crate::progress::{Progress, Step};
use crate::run::CommandError;
use crate::toolchain::{Search, Toolchain, ToolchainError};

pub use python::COMPONENTIZE_PY;

/// A language that functions are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// With cargo.
    Rust,
    /// With componentize-py.
    Python,
    /// With componentize-js, TypeScript too.
    JavaScript,
    /// With clang.
    C,
}

/// A project could not be built.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The folder has no file that says which language it is in.
    #[error("there is no project of functions in {directory}: expected one of {}; `millstream new` makes one", MARKERS.map(|(file, _)| file).join(", "))]
    NotAProject {
        /// Where one was looked for.
        directory: PathBuf,
    },
    /// There is no Rust compiler for WebAssembly.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// The Rust project did not build.
    #[error(transparent)]
    Rust(#[from] BuildError),
    /// The language's compiler is missing or has another version than the SDK needs.
    #[error("{found}.\n{remedy}")]
    Tool {
        /// What was found instead.
        found: String,
        /// What to run.
        remedy: String,
    },
    /// A tool could not be started.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The compiler's own words have gone to standard error already, and into a file.
    #[error("{directory} did not compile; the compiler's errors are above and in {log}")]
    Compile {
        /// The project.
        directory: PathBuf,
        /// The file with all that the compiler said.
        log: PathBuf,
    },
    /// The project's own file cannot be used.
    #[error("{path}: {reason}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("cannot access {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What the compiler made is no component.
    #[error("{module} cannot be made a component")]
    Component {
        /// The file with the module.
        module: PathBuf,
        /// Why.
        source: ComponentError,
    },
}

impl Language {
    /// The language of the project in a folder.
    pub fn of(directory: &Path) -> Option<Self> {
        MARKERS.iter().find(|(file, _)| directory.join(file).is_file()).map(|(_, language)| *language)
    }

    /// Whether a project of this language in a folder is one of functions, and not of something else.
    pub fn is_of_functions(self, directory: &Path) -> bool {
        let (file, word) = match self {
            Self::Rust => ("Cargo.toml", "cdylib"),
            Self::Python => ("pyproject.toml", "[tool.millstream]"),
            Self::JavaScript => ("package.json", "\"millstream\""),
            Self::C => ("millstream.toml", "language"),
        };
        fs::read_to_string(directory.join(file)).is_ok_and(|text| text.contains(word))
    }
}

/// Builds the module of the project in a folder, whatever its language. What the compiler says goes to standard error
/// as it is, and into the log.
///
/// # Errors
/// When there is no project, its compiler is missing, or it does not compile to a module of functions.
pub fn build_project(
    directory: &Path,
    options: &BuildOptions,
    progress: Progress<'_>,
) -> Result<BuiltModule, ProjectError> {
    let project = || Project::open(directory, options);
    match Language::of(directory) {
        None => Err(ProjectError::NotAProject { directory: directory.to_owned() }),
        Some(Language::Rust) => {
            let toolchain = Toolchain::find(&Search::new(directory, true), progress)?;
            Ok(cargo::build_rust(&toolchain, directory, options, progress)?)
        }
        Some(Language::Python) => python::build(&project()?, progress),
        Some(Language::JavaScript) => javascript::build(&project()?, progress),
        Some(Language::C) => c::build(&project()?, progress),
    }
}

/// A project of another language than Rust, about to be built.
pub(crate) struct Project {
    pub(crate) directory: PathBuf,
    /// A folder for what is made on the way.
    pub(crate) work: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) locked: bool,
    /// Folders in which to look for the compiler first.
    pub(crate) tools: Vec<PathBuf>,
}

impl Project {
    fn open(directory: &Path, options: &BuildOptions) -> Result<Self, ProjectError> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let work = absolute(&options.target_dir).join("millstream").join("work");
        let project = Self {
            directory: absolute(directory),
            work,
            log: options.log.clone(),
            locked: options.locked,
            tools: options.tools.clone(),
        };
        project.write("wit/function.wit", WIT)?;
        Ok(project)
    }

    /// The folder with the interface definition.
    pub(crate) fn wit(&self) -> PathBuf {
        self.work.join("wit")
    }

    /// A file of the project as text.
    pub(crate) fn read(&self, name: &str) -> Result<String, ProjectError> {
        let path = self.directory.join(name);
        fs::read_to_string(&path).map_err(|source| ProjectError::File { path, source })
    }

    /// Writes a file into the folder of what is made on the way.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, ProjectError> {
        let path = self.work.join(name);
        let folder = path.parent().unwrap_or(&self.work);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|source| ProjectError::File { path: path.clone(), source })?;
        Ok(path)
    }

    /// The component of what a compiler has made.
    pub(crate) fn finish(
        &self,
        name: &str,
        artifact: PathBuf,
        progress: Progress<'_>,
    ) -> Result<BuiltModule, ProjectError> {
        progress(&Step::Componentizing { module: name.to_owned() });
        let module =
            fs::read(&artifact).map_err(|source| ProjectError::File { path: artifact.clone(), source })?;
        let component = component::componentize(&module)
            .map_err(|source| ProjectError::Component { module: artifact.clone(), source })?;
        Ok(BuiltModule {
            name: name.to_owned(),
            directory: self.directory.clone(),
            artifact,
            component,
            fresh: false,
        })
    }
}

/// What makes a folder a project, and of which language.
const MARKERS: [(&str, Language); 4] = [
    ("Cargo.toml", Language::Rust),
    ("pyproject.toml", Language::Python),
    ("package.json", Language::JavaScript),
    ("millstream.toml", Language::C),
];

/// The interface definition.
const WIT: &str = include_str!("../../../wit/function.wit");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_which_language_a_project_is_in() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        assert_eq!(Language::of(folder.path()), None);
        for (file, language) in MARKERS.into_iter().rev() {
            fs::write(folder.path().join(file), "").expect("writes");
            assert_eq!(Language::of(folder.path()), Some(language));
            assert!(!language.is_of_functions(folder.path()));
        }
    }
}
