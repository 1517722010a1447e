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
}

/// Where a template goes, with places to fill in, and the template.
type Template = (&'static str, &'static str);

impl Language {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
        }
    }

    /// The folder of its SDK in the repository.
    pub(crate) fn sdk(self) -> String {
        format!("guest-sdk/{}", self.name())
    }

    /// A file in that folder by which it is known, and a word in the file.
    pub(crate) fn sdk_marker(self) -> (&'static str, &'static str) {
        match self {
            Self::Rust => ("Cargo.toml", "name = \"millstream-sdk\""),
            Self::Python => ("pyproject.toml", "name = \"millstream\""),
        }
    }

    /// The file with the function.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Python => "src/{{module}}.py",
        }
    }

    /// What tests the function natively.
    pub(crate) fn native_test(self) -> &'static str {
        match self {
            Self::Rust => "cargo test",
            Self::Python => "PYTHONPATH=src:{{sdk}}/src python3 -m unittest discover tests",
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

fn rust(kind: Kind) -> &'static str {
    templates!("rust", kind, ".rs.in")
}

fn python(kind: Kind) -> (&'static str, &'static str) {
    templates!("python", kind, ".py.in", "_test.py.in")
}
