//! Guests in C, against the bare interface.
//!
//! The bindings are generated from `wit/` with each build and are not in the repository, so that they cannot be
//! out of date. `wit-bindgen c wit -w WORLD` makes the same ones for an editor to look at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use millstream_guest_build::{Packages, Step, componentize};
use wit_bindgen_core::{Files, wit_parser::Resolve};

use super::output::{Guest, Output};
use super::{Built, require};
use crate::printer::Printer;
use crate::workspace::{Workspace, is_on_path, run_quietly};

/// A guest of one source file.
struct Source {
    name: &'static str,
    file: &'static str,
    world: &'static str,
}

pub(super) fn build(workspace: &Workspace, output: &Output, printer: &Printer) -> Result<Built> {
    let fresh: Option<Vec<_>> =
        SOURCES.iter().map(|source| output.up_to_date(source.name, &inputs(workspace, source))).collect();
    if let Some(guests) = fresh {
        return Ok(Built::of(guests));
    }
    if let Some(remedy) = require(&Packages::new(PACKAGES), printer)? {
        return Ok(Built::left_out(format!("the guests in C: {remedy}")));
    }
    let Some(compiler) = COMPILERS.into_iter().find(|name| is_on_path(name)) else {
        return Ok(Built::left_out("the guests in C: there is no clang with a WebAssembly target"));
    };
    let guests: Result<_> =
        SOURCES.iter().map(|source| build_one(workspace, source, compiler, output, printer)).collect();
    Ok(Built::of(guests?))
}

fn build_one(
    workspace: &Workspace,
    source: &Source,
    compiler: &str,
    output: &Output,
    printer: &Printer,
) -> Result<Guest> {
    let start = Instant::now();
    let work = workspace.target.join("guest-c").join(source.name);
    let bindings = generate_bindings(&workspace.wit(), source.world, &work)?;
    let module = work.join("module.wasm");
    let mut command = Command::new(compiler);
    command.args(FLAGS).arg("-isystem").arg(&work).arg(workspace.root.join(FOLDER).join(source.file));
    command.args(bindings).arg("-o").arg(&module);
    printer.progress(Step::Compiling { directory: workspace.root.join(FOLDER).join(source.file) });
    run_quietly(&mut command, printer)?;
    let core = fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
    let component = componentize(&core).with_context(|| format!("{} cannot be a component", source.file))?;
    output.put_made_of(source.name, &component, start.elapsed(), &inputs(workspace, source))
}

/// Writes the bindings into a folder; returns those files that are compiled or linked.
pub(crate) fn generate_bindings(wit: &Path, world: &str, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).with_context(|| format!("cannot read {}", wit.display()))?;
    let world = resolve.select_world(&[package], Some(world))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default().build().generate(&mut resolve, world, &mut files)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut linked = Vec::new();
    for (name, content) in files.iter() {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        if !name.ends_with(".h") {
            linked.push(path);
        }
    }
    Ok(linked)
}

fn inputs(workspace: &Workspace, source: &Source) -> Vec<PathBuf> {
    vec![workspace.root.join(FOLDER).join(source.file), workspace.wit()]
}

const FOLDER: &str = "tests/guests/c";
const SOURCES: [Source; 2] = [
    Source { name: "c_map", file: "map.c", world: "map-module" },
    Source { name: "c_process", file: "process.c", world: "process-module" },
];
pub(super) const PACKAGES: [&str; 4] = ["clang-19", "lld-19", "wasi-libc", "libclang-rt-19-dev-wasm32"];
const COMPILERS: [&str; 2] = ["clang-19", "clang"];

/// `wasm32-wasi` is for the C library's memory functions; nothing here calls WASI. A reactor has no `main`.
const FLAGS: [&str; 10] = [
    "--target=wasm32-wasi",
    "--sysroot=/usr",
    "-mexec-model=reactor",
    "-std=c17",
    "-O3",
    "-msimd128",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wl,--strip-debug",
];
