//! C: clang, which compiles the project's files with those of the SDK. What says which world the module has is put into it
//! here, so that the bindings need no object file beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Project, ProjectError, tool};
use crate::cargo::BuiltModule;
use crate::component;
use crate::progress::{Progress, Step};
use crate::run;

/// What `millstream.toml` says of a module.
#[derive(Debug, PartialEq, Eq)]
struct Module {
    name: String,
    sdk: String,
}

pub(super) fn build(project: &Project, progress: Progress<'_>) -> Result<BuiltModule, ProjectError> {
    let module = Module::read(&project.read(MANIFEST)?)
        .map_err(|reason| ProjectError::Manifest { path: project.directory.join(MANIFEST), reason })?;
    let (compiler, sysroot) = compiler(project)?;
    let sdk = project.directory.join(&module.sdk).join("src");
    let own = sources(&project.directory.join("src"))?;
    let core = project.work.join("core.wasm");
    let mut command = Command::new(compiler);
    command.current_dir(&project.directory).args(FLAGS).arg(format!("--sysroot={sysroot}"));
    // Failures name files as the project does.
    command.arg(format!("-ffile-prefix-map={}/=", project.directory.display()));
    // Warnings are about the project's own files.
    command.arg("-isystem").arg(&sdk).args(own).args(sources(&sdk)?).arg("-o").arg(&core);
    progress(&Step::Compiling { directory: project.directory.clone() });
    if !run::shown(&mut command, &project.log)?.status.success() {
        let (directory, log) = (project.directory.clone(), project.log.clone());
        return Err(ProjectError::Compile { directory, log });
    }
    let bytes = fs::read(&core).map_err(|source| ProjectError::File { path: core.clone(), source })?;
    let named = component::embed_world(&bytes, &project.wit(), "module")
        .map_err(|source| ProjectError::Component { module: core.clone(), source })?;
    fs::write(&core, named).map_err(|source| ProjectError::File { path: core.clone(), source })?;
    project.finish(&module.name, core, progress)
}

impl Module {
    fn read(text: &str) -> Result<Self, String> {
        let manifest: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let text = |key: &str| {
            let value = manifest.get(key).and_then(toml::Value::as_str);
            value.map(str::to_owned).ok_or_else(|| format!("found no text `{key}`"))
        };
        match text("language")?.as_str() {
            "c" => Ok(Self { name: text("name")?, sdk: text("sdk")? }),
            other => Err(format!("`language` is `{other}`, expected `c`")),
        }
    }
}

/// The C files of a folder, in order.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, ProjectError> {
    let failed = |source| ProjectError::File { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut files: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "c")).collect();
    files.sort();
    Ok(files)
}

/// A clang that compiles to WebAssembly, and the folder of its C library.
fn compiler(project: &Project) -> Result<(PathBuf, &'static str), ProjectError> {
    let refuse = |found: &str| ProjectError::Tool {
        found: found.to_owned(),
        remedy: format!("On Debian, run `apt-get install {PACKAGES}`."),
    };
    let found =
        ["clang-19", "clang"].iter().find_map(|name| tool::find("MILLSTREAM_CLANG", name, &project.tools));
    let Some(compiler) = found else { return Err(refuse("there is no clang, which compiles C")) };
    let sysroot = SYSROOTS.iter().find(|root| SIGNS.iter().any(|sign| Path::new(root).join(sign).exists()));
    let Some(sysroot) = sysroot else {
        return Err(refuse("there is no C library for WebAssembly (wasi-libc)"));
    };
    Ok((compiler, sysroot))
}

const MANIFEST: &str = "millstream.toml";
const PACKAGES: &str = "clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32";
/// Debian's, and that of the WASI SDK.
const SYSROOTS: [&str; 2] = ["/usr", "/opt/wasi-sdk/share/wasi-sysroot"];
const SIGNS: [&str; 2] = ["lib/wasm32-wasi/libc.a", "lib/wasm32-wasip1/libc.a"];

/// A reactor has no `main`. Function names stay in the module: the host prints call stacks with them.
const FLAGS: [&str; 8] = [
    "--target=wasm32-wasi",
    "-mexec-model=reactor",
    "-std=c17",
    "-O3",
    "-msimd128",
    "-Wall",
    "-Wextra",
    "-Wl,--strip-debug",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_says_who_its_module_is() {
        let module = Module::read("language = \"c\"\nname = \"a\"\nsdk = \"b\"").expect("is right");
        assert_eq!(module, Module { name: "a".to_owned(), sdk: "b".to_owned() });
        assert!(Module::read("language = \"go\"").expect_err("is another").contains("expected `c`"));
        assert!(Module::read("").expect_err("is empty").contains("`language`"));
    }
}
