//! The languages that a project may be in, and the files that each has beside those that all have.

use clap::ValueEnum;

use super::kind::Kind;

/// Which language a new project is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// With cargo
    Rust,
    /// With componentize-py
    Python,
    /// With componentize-js
    Javascript,
    /// With componentize-js
    Typescript,
    /// With clang
    C,
}

/// Where a template goes, with places to fill in, and the template.
type Template = (&'static str, &'static str);

impl Language {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Javascript => "javascript",
            Self::Typescript => "typescript",
            Self::C => "c",
        }
    }

    /// The folder of its SDK in the repository.
    pub(crate) fn sdk(self) -> &'static str {
        match self {
            Self::Rust => "guest-sdk/rust",
            Self::Python => "guest-sdk/python",
            Self::Javascript | Self::Typescript => "guest-sdk/javascript",
            Self::C => "guest-sdk/c",
        }
    }

    /// A file in that folder by which it is known, and a word in the file.
    pub(crate) fn sdk_marker(self) -> (&'static str, &'static str) {
        match self {
            Self::Rust => ("Cargo.toml", "name = \"millstream-sdk\""),
            Self::Python => ("pyproject.toml", "name = \"millstream\""),
            Self::Javascript | Self::Typescript => ("package.json", "\"name\": \"millstream\""),
            Self::C => ("src/millstream.h", "MILLSTREAM_H"),
        }
    }

    /// The file with the function.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Python => "src/{{module}}.py",
            Self::Javascript => "src/index.js",
            Self::Typescript => "src/index.ts",
            Self::C => "src/{{module}}.c",
        }
    }

    /// What makes the tools of a project be there, where it brings them itself.
    pub(crate) fn install(self) -> Option<&'static str> {
        match self {
            Self::Rust => None,
            Self::C => Some("apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32"),
            Self::Python => Some("python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1"),
            Self::Javascript | Self::Typescript => Some("npm install"),
        }
    }

    /// What its tools put into a project's folder that belongs into no version control, a line each.
    pub(crate) fn ignored(self) -> &'static str {
        match self {
            Self::Rust | Self::C => "",
            Self::Python => ".venv/\n__pycache__/\n",
            Self::Javascript | Self::Typescript => "node_modules/\n",
        }
    }

    /// What tests the function natively, where the SDK has something for that.
    pub(crate) fn native_test(self) -> Option<&'static str> {
        match self {
            Self::Rust => Some("cargo test"),
            Self::C => None,
            Self::Python => Some("PYTHONPATH=src:{{sdk}}/src python3 -m unittest discover tests"),
            Self::Javascript | Self::Typescript => Some("npm test"),
        }
    }

    /// What that test does.
    pub(crate) fn native_test_does(self) -> &'static str {
        match self {
            Self::Typescript => "types, and the function by itself, natively",
            _ => "the function by itself, natively",
        }
    }

    /// Its files for a kind of function.
    pub(crate) fn files(self, kind: Kind) -> Vec<Template> {
        match self {
            Self::Rust => vec![
                ("Cargo.toml", include_str!("../../../templates/rust/Cargo.toml.in")),
                (self.source(), rust(kind)),
            ],
            Self::Python => {
                let (function, test) = python(kind);
                vec![
                    ("pyproject.toml", include_str!("../../../templates/python/pyproject.toml.in")),
                    (self.source(), function),
                    ("tests/test_{{function}}.py", test),
                ]
            }
            Self::Javascript => {
                let (function, test) = javascript(kind);
                vec![
                    ("package.json", include_str!("../../../templates/javascript/package.json.in")),
                    (self.source(), function),
                    ("tests/{{function}}.test.js", test),
                ]
            }
            Self::C => vec![
                ("millstream.toml", include_str!("../../../templates/c/millstream.toml.in")),
                ("compile_flags.txt", include_str!("../../../templates/c/compile_flags.txt.in")),
                (self.source(), c(kind)),
            ],
            // Types are inferred, so that the same text does.
            Self::Typescript => {
                let (function, test) = javascript(kind);
                vec![
                    (
                        "package.json",
                        include_str!("../../../templates/javascript/package-typescript.json.in"),
                    ),
                    ("tsconfig.json", include_str!("../../../templates/javascript/tsconfig.json.in")),
                    (self.source(), function),
                    ("tests/{{function}}.test.ts", test),
                ]
            }
        }
    }
}

/// The templates of a language for a kind: the function, and its test where that is a file of its own.
macro_rules! templates {
    ($language:literal, $kind:expr, $($ending:literal),+) => {
        match $kind {
            Kind::Map => ($(include_str!(concat!("../../../templates/", $language, "/map", $ending))),+),
            Kind::Process => ($(include_str!(concat!("../../../templates/", $language, "/process", $ending))),+),
            Kind::Aggregate => ($(include_str!(concat!("../../../templates/", $language, "/aggregate", $ending))),+),
            Kind::Window => ($(include_str!(concat!("../../../templates/", $language, "/window", $ending))),+),
        }
    };
}

fn c(kind: Kind) -> &'static str {
    templates!("c", kind, ".c.in")
}

fn rust(kind: Kind) -> &'static str {
    templates!("rust", kind, ".rs.in")
}

fn javascript(kind: Kind) -> (&'static str, &'static str) {
    templates!("javascript", kind, ".js.in", ".test.js.in")
}

fn python(kind: Kind) -> (&'static str, &'static str) {
    templates!("python", kind, ".py.in", "_test.py.in")
}
