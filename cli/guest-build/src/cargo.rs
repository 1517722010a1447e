//! Building Rust guests with cargo.
//!
//! A guest is a `cdylib` crate. What it needs beyond that, the target, linker, instruction set and profile, is
//! given to cargo from outside, so that the crate is an ordinary one and its tests run natively. Function names
//! stay in the module: the host prints backtraces with them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Deserialize;

use crate::component::{self, ComponentError};
use crate::progress::{Progress, Step};
use crate::run::{self, CommandError};
use crate::toolchain::{Target, Toolchain};

/// How to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Cargo's target folder. Guests of one folder share what they have in common.
    pub target_dir: PathBuf,
    /// Build with exactly the versions in `Cargo.lock`, and fail where it is not current.
    pub locked: bool,
    /// Folders in which compilers of other languages are looked for first.
    pub tools: Vec<PathBuf>,
    /// The file that keeps what the compiler says.
    pub log: PathBuf,
}

/// A guest that has been built.
#[derive(Debug, Clone)]
pub struct BuiltModule {
    /// Its library's name, as in `busy_planes`.
    pub name: String,
    /// The folder of its crate.
    pub directory: PathBuf,
    /// What the compiler made.
    pub artifact: PathBuf,
    /// The validated component.
    pub component: Vec<u8>,
    /// Whether cargo found nothing to do.
    pub fresh: bool,
}

/// A guest could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder is not a crate.
    #[error("there is no Cargo.toml in {directory}; `millstream new` makes a crate")]
    NotACrate {
        /// Where one was looked for.
        directory: PathBuf,
    },
    /// Cargo could not be started.
    #[error("cannot run cargo, which comes with Rust (https://rustup.rs)")]
    Cargo(#[source] CommandError),
    /// The compiler's own words have gone to standard error already, and into a file.
    #[error("{directory} did not compile; the compiler's errors are above and in {log}")]
    Compile {
        /// The crate or workspace.
        directory: PathBuf,
        /// The file with all that the compiler said.
        log: PathBuf,
    },
    /// It compiled, but to nothing that could be loaded.
    #[error(
        "{directory} makes no WebAssembly module; its Cargo.toml needs `[lib]` with `crate-type = [\"cdylib\"]`"
    )]
    NoModule {
        /// The crate.
        directory: PathBuf,
    },
    /// One module was wanted.
    #[error("{directory} makes {} modules ({}); name the folder of one of them", names.len(), names.join(", "))]
    SeveralModules {
        /// The workspace.
        directory: PathBuf,
        /// The modules' names.
        names: Vec<String>,
    },
    /// What the compiler says could not be kept.
    #[error("cannot write the compiler's log {path}")]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The compiler's output could not be read.
    #[error("cannot read {path}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The module cannot be a component.
    #[error("{module} cannot be made a component")]
    Component {
        /// The file with the module.
        module: PathBuf,
        /// Why.
        source: ComponentError,
    },
}

/// Builds the one guest of a crate. The compiler's warnings and errors go to standard error as they are, and into
/// the log.
///
/// # Errors
/// When it does not compile, makes no module or more than one, or the module is no function module.
pub fn build_rust(
    toolchain: &Toolchain,
    crate_dir: &Path,
    options: &BuildOptions,
    progress: Progress<'_>,
) -> Result<BuiltModule, BuildError> {
    let mut modules = build_rust_workspace(toolchain, crate_dir, options, progress)?;
    match (modules.pop(), modules.is_empty()) {
        (Some(module), true) => module,
        (None, _) => Err(BuildError::NoModule { directory: crate_dir.to_owned() }),
        (Some(last), false) => {
            let built = modules.into_iter().chain([last]).collect::<Result<Vec<_>, _>>()?;
            let names = built.into_iter().map(|module| module.name).collect();
            Err(BuildError::SeveralModules { directory: crate_dir.to_owned(), names })
        }
    }
}

/// Builds all guests of a crate or workspace in one run of cargo. A module that cannot be a component has an
/// error in the place of its result, and keeps no other from being built.
///
/// # Errors
/// When the folder is not a crate, or something in it does not compile.
pub fn build_rust_workspace(
    toolchain: &Toolchain,
    directory: &Path,
    options: &BuildOptions,
    progress: Progress<'_>,
) -> Result<Vec<Result<BuiltModule, BuildError>>, BuildError> {
    if !directory.join("Cargo.toml").is_file() {
        return Err(BuildError::NotACrate { directory: directory.to_owned() });
    }
    progress(&Step::Compiling { directory: directory.to_owned() });
    let mut command = cargo_build(toolchain, directory, options);
    let output = run::shown(&mut command, &options.log).map_err(|error| match error {
        CommandError::Log { path, source } => BuildError::Log { path, source },
        other => BuildError::Cargo(other),
    })?;
    if !output.status.success() {
        let (directory, log) = (directory.to_owned(), options.log.clone());
        return Err(BuildError::Compile { directory, log });
    }
    Ok(modules_in(&output).into_iter().map(|artifact| finish(artifact, progress)).collect())
}

/// Takes from a command the settings that were meant for another build: those of the cargo that may be running
/// us, and those of the user for native code.
pub(crate) fn isolate(command: &mut Command) {
    for variable in FOREIGN {
        command.env_remove(variable);
    }
}

fn cargo_build(toolchain: &Toolchain, directory: &Path, options: &BuildOptions) -> Command {
    let mut command = Command::new(&toolchain.cargo);
    isolate(&mut command);
    command
        .current_dir(directory)
        .env("RUSTC", &toolchain.rustc)
        .env("CARGO_ENCODED_RUSTFLAGS", rustflags(toolchain))
        .envs(PROFILE)
        .args(["build", "--release", "--target", toolchain.target.triple()])
        .arg("--target-dir")
        .arg(&options.target_dir)
        // Errors go to standard error for the user, the list of what was made to standard output for us.
        .arg("--message-format=json-render-diagnostics");
    if options.locked {
        command.arg("--locked");
    }
    // A crate may have set up a linker; for a target without WASI the component is made here.
    match toolchain.target {
        Target::UnknownUnknown => command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "rust-lld"),
        Target::Wasip2 => command.env("CARGO_TARGET_WASM32_WASIP2_LINKER", "wasm-component-ld"),
    };
    command
}

/// Flags in cargo's encoding, which keeps spaces in paths.
fn rustflags(toolchain: &Toolchain) -> String {
    let mut flags = vec![SIMD.to_owned()];
    if let Some(folder) = &toolchain.c_library {
        let folder = folder.display();
        flags.push("-Clink-self-contained=no".to_owned());
        flags.push(format!("-Lnative={folder}"));
        flags.push(format!("-Clink-arg={folder}/crt1-reactor.o"));
    }
    flags.join("\u{1f}")
}

/// The lines of cargo's output that we care about; it may print others, and more in the future.
fn modules_in(output: &Output) -> Vec<Artifact> {
    let lines = output.stdout.split(|&byte| byte == b'\n');
    lines
        .filter_map(|line| match serde_json::from_slice(line) {
            Ok(Message::CompilerArtifact(artifact)) if artifact.module().is_some() => Some(artifact),
            _ => None,
        })
        .collect()
}

fn finish(artifact: Artifact, progress: Progress<'_>) -> Result<BuiltModule, BuildError> {
    let name = artifact.target.name.replace('-', "_");
    let path = artifact.module().unwrap_or_default();
    progress(&Step::Componentizing { module: name.clone() });
    let module = fs::read(&path).map_err(|source| BuildError::Read { path: path.clone(), source })?;
    let component = component::componentize(&module)
        .map_err(|source| BuildError::Component { module: path.clone(), source })?;
    let directory = artifact.manifest_path.parent().map(Path::to_owned).unwrap_or_default();
    Ok(BuiltModule { name, directory, artifact: path, component, fresh: artifact.fresh })
}

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact(Artifact),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: ArtifactTarget,
    filenames: Vec<PathBuf>,
    fresh: bool,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    name: String,
    kind: Vec<String>,
}

impl Artifact {
    /// The module's file, if it is the artifact of a `cdylib`.
    fn module(&self) -> Option<PathBuf> {
        let is_module = self.target.kind.iter().any(|kind| kind == "cdylib");
        let file = self.filenames.iter().find(|path| path.extension() == Some(OsStr::new("wasm")));
        file.filter(|_| is_module).cloned()
    }
}

const SIMD: &str = "-Ctarget-feature=+simd128";

/// Speed before size, and names for backtraces. A trap ends the instance, so that there is nobody to unwind to.
const PROFILE: [(&str, &str); 6] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3"),
    ("CARGO_PROFILE_RELEASE_LTO", "fat"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
    ("CARGO_PROFILE_RELEASE_STRIP", "debuginfo"),
];

const FOREIGN: [&str; 13] = [
    "CARGO_BUILD_BUILD_DIR",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_MAKEFLAGS",
    "CARGO_TARGET_DIR",
    "MAKEFLAGS",
    "RUSTC_BOOTSTRAP",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTFLAGS",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modules_are_taken_from_cargos_messages() {
        let lines = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","fresh":true,"#,
            r#""target":{"name":"flights","kind":["cdylib","rlib"]},"filenames":["/t/flights.wasm","/t/libflights.rlib"]}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/b/Cargo.toml","fresh":false,"#,
            r#""target":{"name":"serde","kind":["lib"]},"filenames":["/t/libserde.rlib"]}"#,
            "\nnot json\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let output = Output { status: Default::default(), stdout: lines.into(), stderr: Vec::new() };
        let found: Vec<_> = modules_in(&output).iter().filter_map(Artifact::module).collect();
        assert_eq!(found, [PathBuf::from("/t/flights.wasm")]);
    }
}
