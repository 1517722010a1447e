//! Builds guests: a crate of functions in, a validated WebAssembly component out.
//!
//! The way of a crate: [`Toolchain::find`] says which compiler and target to use, and prepares one where none is
//! ready; [`build_rust`] runs cargo with the settings that every guest needs, so that a user's crate carries no
//! `.cargo/config.toml`; [`componentize`] wraps the core module into a component in this process; [`describe`] says
//! what the component exports and imports. [`build_project`] does all of it for a project in any language; in those
//! other than Rust it drives the language's own compiler.
//!
//! What a module declares about its functions, its manifest, is not read here: that takes running it, which is
//! the host's part. So this crate needs no engine, and is quick to build.

mod cargo;
mod component;
mod debian;
mod describe;
mod language;
mod lock;
mod progress;
mod run;
mod standard_library;
mod toolchain;

pub use cargo::{BuildError, BuildOptions, BuiltModule, build_rust, build_rust_workspace};
pub use component::{ComponentError, componentize, embed_world};
pub use debian::{PackageError, Packages, running_as_root, running_on_debian};
pub use describe::{Description, NotAComponent, describe};
pub use language::{COMPONENTIZE_PY, Language, ProjectError, build_project};
pub use lock::LockError;
pub use progress::{Progress, Step};
pub use run::CommandError;
pub use standard_library::StandardLibraryError;
pub use toolchain::{Search, Target, Toolchain, ToolchainError};
