//! `millstream build`: a project of functions becomes a component, checked by the host that will run it.

mod describe;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use miette::{IntoDiagnostic, miette};
use millstream_guest_build::{BuildError, BuildOptions, BuiltModule, ProjectError, Step, build_project};
use millstream_types::Manifest;

use crate::{
    args,
    exit::{Exit, Failure},
    load,
    printer::Printer,
};

/// Where modules go, from the project's folder.
pub(crate) const OUTPUT: &str = "target/millstream";

/// Where the compiler's words are kept, from the project's folder.
const LOG: &str = "target/millstream/build.log";

/// A module that has been built and written.
pub(crate) struct Built {
    /// What the host read in it.
    pub(crate) manifest: Manifest,
    /// The component's file.
    pub(crate) path: PathBuf,
    size: usize,
    imports: Vec<String>,
    fresh: bool,
}

pub(crate) fn run(args: &args::Build, printer: &Printer) -> Result<Exit, Failure> {
    let folder = args.folder.as_deref().unwrap_or(Path::new("."));
    let built = build(folder, args.output.as_deref(), args.locked, printer)?;
    printer.result(&describe::document(&built), || describe::text(&built));
    Ok(Exit::Success)
}

/// Builds the project in a folder. What is being done is told on stderr, as are the compiler's own words, which are kept
/// in a file too.
pub(crate) fn build(
    folder: &Path,
    output: Option<&Path>,
    locked: bool,
    printer: &Printer,
) -> Result<Built, Failure> {
    let progress = |step: &Step| printer.note(&step.to_string());
    let (target_dir, log) = (target_folder(folder), folder.join(LOG));
    let options = BuildOptions { target_dir, locked, tools: Vec::new(), log };
    let module = build_project(folder, &options, &progress).map_err(build_failed)?;
    let manifest = inspect(&module)?;
    let description = millstream_guest_build::describe(&module.component).into_diagnostic();
    let imports = description.map_err(Failure::invalid)?.imports;
    let path = match output {
        Some(path) => path.to_owned(),
        None => folder.join(OUTPUT).join(format!("{}.wasm", module.name)),
    };
    write(&path, &module.component)
        .map_err(|e| Failure::environment(miette!("{}: cannot be written: {e}", path.display())))?;
    Ok(Built { manifest, path, size: module.component.len(), imports, fresh: module.fresh })
}

/// Cargo's own folder for what it makes: the crate's, unless the user has one for all crates.
fn target_folder(folder: &Path) -> PathBuf {
    let shared = env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty());
    let chosen = shared.map_or_else(|| folder.join("target"), PathBuf::from);
    std::path::absolute(&chosen).unwrap_or(chosen)
}

/// Loads the module as a job would and reads its manifest.
fn inspect(module: &BuiltModule) -> Result<Manifest, Failure> {
    let engine = load::engine()?;
    let manifest = engine.compile(&module.name, &module.component).and_then(|module| module.manifest());
    Ok(manifest.into_diagnostic().map_err(Failure::invalid)?.as_ref().clone())
}

/// A project that does not compile is the user's; a tool or file that is missing is the machine's.
fn build_failed(error: ProjectError) -> Failure {
    let machine = match &error {
        ProjectError::Rust(error) => {
            matches!(error, BuildError::Cargo(_) | BuildError::Read { .. } | BuildError::Log { .. })
        }
        ProjectError::Toolchain(_)
        | ProjectError::Tool { .. }
        | ProjectError::Command(_)
        | ProjectError::File { .. } => true,
        _ => false,
    };
    let report = Err::<(), _>(error).into_diagnostic();
    match report {
        Err(report) if machine => Failure::environment(report),
        Err(report) => Failure::invalid(report),
        Ok(()) => unreachable!("it is an error"),
    }
}

/// A job that starts meanwhile sees the old module or the new one, never half of it.
fn write(path: &Path, component: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, component)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}
