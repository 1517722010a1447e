//! Builds small crates with the toolchain of this machine, from their sources to components.

use std::fs;
use std::path::{Path, PathBuf};

use millstream_guest_build::{
    BuildError, BuildOptions, Search, Toolchain, build_rust, build_rust_workspace, componentize, describe,
    embed_world,
};

const WIT: &str =
    "package test:greeting; world greeter { import log: func(level: u32); export greet: func() -> u32; }";

const LIBRARY: &str = r#"
#[link(wasm_import_module = "$root")]
unsafe extern "C" {
    #[link_name = "log"]
    fn log(level: u32);
}

#[inline(never)]
fn longest_word(words: &[String]) -> usize {
    words.iter().map(String::len).max().unwrap_or_else(|| panic!("no words"))
}

#[unsafe(export_name = "greet")]
extern "C" fn greet() -> u32 {
    unsafe { log(1) };
    let words = std::hint::black_box(vec!["hello".to_owned(), "world!".to_owned()]);
    longest_word(&words) as u32
}
"#;

const WITH_INTERFACE: &str = r#"
#[unsafe(link_section = "component-type:greeter")]
#[used]
static COMPONENT_TYPE: [u8; include_bytes!("type.bin").len()] = *include_bytes!("type.bin");
"#;

/// A crate in a folder of its own, whose target folder lies beside it.
struct Crate(tempfile::TempDir);

impl Crate {
    fn new(name: &str, kind: &str, source: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder for the test"));
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [lib]\ncrate-type = [\"{kind}\"]\n\n[workspace]\n"
        );
        fs::create_dir(folder.path().join("src")).expect("a new folder");
        folder.write("Cargo.toml", &manifest);
        folder.write("src/lib.rs", source);
        folder.write("greeting.wit", WIT);
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), content).expect("the folder is there");
    }

    fn options(&self) -> BuildOptions {
        BuildOptions {
            target_dir: self.path().join("target"),
            locked: false,
            tools: Vec::new(),
            log: self.log(),
        }
    }

    fn log(&self) -> PathBuf {
        self.path().join("build.log")
    }

    fn toolchain(&self) -> Toolchain {
        let search = Search::new(self.path(), true);
        Toolchain::find(&search, &|_| {}).expect("a toolchain for guests")
    }

    fn build(&self) -> Result<millstream_guest_build::BuiltModule, BuildError> {
        build_rust(&self.toolchain(), self.path(), &self.options(), &|_| {})
    }
}

/// The bytes of the section in which a module says what world it implements.
fn component_type(folder: &Crate) -> Vec<u8> {
    let empty = wat::parse_str("(module)").expect("is a module");
    let embedded = embed_world(&empty, &folder.path().join("greeting.wit"), "greeter").expect("embeds");
    let section = wasmparser::Parser::new(0).parse_all(&embedded).find_map(|payload| match payload {
        Ok(wasmparser::Payload::CustomSection(section)) => Some(section.data().to_owned()),
        _ => None,
    });
    section.expect("embedding makes a custom section")
}

#[test]
fn a_crate_without_any_settings_becomes_a_component() {
    let hello = Crate::new("hello-guest", "cdylib", &format!("{LIBRARY}{WITH_INTERFACE}"));
    hello.write("src/type.bin", component_type(&hello));
    let built = hello.build().expect("builds");

    assert_eq!(built.name, "hello_guest");
    let description = describe(&built.component).expect("is a component");
    assert_eq!(description.exports, ["greet"]);
    assert_eq!(description.imports, ["log"], "more is needed from the host than the world says");
    assert!(description.size < 100_000, "{} bytes", description.size);
    assert!(contains(&built.component, "longest_word"), "backtraces would have no names");
    assert!(hello.build().expect("builds again").fresh, "built again without a change");
}

#[test]
fn a_module_without_an_interface_is_refused_and_takes_one_from_outside() {
    let hello = Crate::new("bare", "cdylib", LIBRARY);
    let error = hello.build().expect_err("carries no type");
    let BuildError::Component { module, .. } = error else { panic!("other error: {error}") };

    let core = fs::read(module).expect("the artifact is there");
    let embedded = embed_world(&core, &hello.path().join("greeting.wit"), "greeter").expect("embeds");
    let component = componentize(&embedded).expect("encodes");
    assert_eq!(describe(&component).expect("is a component").exports, ["greet"]);
}

#[test]
fn a_crates_own_cargo_settings_do_not_get_in_the_way() {
    let hello = Crate::new("configured", "cdylib", LIBRARY);
    fs::create_dir(hello.path().join(".cargo")).expect("a new folder");
    hello.write(
        ".cargo/config.toml",
        "[build]\ntarget-dir = \"elsewhere\"\nrustflags = [\"-Clink-arg=--no-such-flag\"]\n\
         [target.wasm32-unknown-unknown]\nlinker = \"no-such-linker\"\n",
    );
    assert!(matches!(hello.build(), Err(BuildError::Component { .. })), "did not link");
    assert!(!hello.path().join("elsewhere").exists(), "built in another folder than was asked for");
}

#[test]
fn a_crate_that_asks_for_wasi_gets_it() {
    let printing = LIBRARY.replace("unsafe { log(1) };", "unsafe { log(1) }; eprintln!(\"hello\");");
    let hello = Crate::new("printing", "cdylib", &format!("{printing}{WITH_INTERFACE}"));
    hello.write("src/type.bin", component_type(&hello));
    let manifest = fs::read_to_string(hello.path().join("Cargo.toml")).expect("is there");
    hello.write("Cargo.toml", manifest + "[package.metadata.millstream]\nwasi = true\n");
    let description = describe(&hello.build().expect("builds").component).expect("is a component");
    let imports = |prefix: &str| description.imports.iter().any(|import| import.starts_with(prefix));
    assert!(imports("log") && imports("wasi:cli/stderr@0.2"), "{:?}", description.imports);
    assert_eq!(description.exports, ["greet"]);
}

#[test]
fn errors_say_what_to_do() {
    let wrong = Crate::new("wrong", "cdylib", "pub fn f() -> u32 { \"text\" }");
    let error = wrong.build().expect_err("has a wrong type");
    assert!(matches!(error, BuildError::Compile { .. }), "{error}");
    assert!(error.to_string().ends_with(&format!("are above and in {}", wrong.log().display())), "{error}");
    let log = fs::read_to_string(wrong.log()).expect("is kept");
    assert!(log.contains("error[E0308]: mismatched types") && log.contains("could not compile"), "{log}");

    let library = Crate::new("library", "rlib", "");
    let message = library.build().expect_err("makes no module").to_string();
    assert!(message.contains("crate-type = [\"cdylib\"]"), "{message}");

    fs::remove_file(library.path().join("Cargo.toml")).expect("was there");
    let message = library.build().expect_err("is no crate").to_string();
    assert!(message.contains("no Cargo.toml in"), "{message}");
}

#[test]
fn a_wrong_module_of_a_workspace_keeps_no_other_from_being_built() {
    let workspace = Crate::new("first", "cdylib", &format!("{LIBRARY}{WITH_INTERFACE}"));
    workspace.write("src/type.bin", component_type(&workspace));
    fs::create_dir_all(workspace.path().join("second/src")).expect("new folders");
    let manifest = fs::read_to_string(workspace.path().join("Cargo.toml")).expect("is there");
    workspace.write("second/Cargo.toml", manifest.replace("first", "second").replace("[workspace]\n", ""));
    workspace.write("second/src/lib.rs", LIBRARY);
    workspace
        .write("Cargo.toml", manifest + "members = [\"second\"]\ndefault-members = [\".\", \"second\"]\n");

    let toolchain = workspace.toolchain();
    let built = build_rust_workspace(&toolchain, workspace.path(), &workspace.options(), &|_| {});
    let (components, failed): (Vec<_>, Vec<_>) =
        built.expect("compiles").into_iter().partition(Result::is_ok);
    let names: Vec<_> = components.into_iter().flatten().map(|module| module.name).collect();
    assert_eq!(names, ["first"]);
    assert!(matches!(failed[..], [Err(BuildError::Component { .. })]), "the second has no interface");
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
