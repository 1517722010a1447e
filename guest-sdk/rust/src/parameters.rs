//! A function's parameters: read once when it opens, typed, with defaults and documentation in the manifest.

use crate::column::Type;
use crate::host;
use crate::manifest::ParameterSpec;

/// A struct of parameters. Derive it: `#[derive(Parameters)]`, with `#[parameter(default = 15)]` on a field
/// that the job file may leave out; a field's doc comment is the parameter's.
pub trait Parameters: Sized {
    /// What the manifest says of them.
    fn specs() -> Vec<ParameterSpec>;
    /// Reads them; errors with the parameter's name, what was found and what was expected.
    fn read() -> Result<Self, String>;
}

impl Parameters for () {
    fn specs() -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn read() -> Result<Self, String> {
        Ok(())
    }
}

/// A type that a parameter may have.
pub trait ParameterValue: Sized {
    /// Its name in the manifest.
    const TYPE: Type;
    /// Reads it from the job file's text; none if the text is not of this type.
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! parameter {
    ($($rust:ty => $type:ident),*) => {
        $(impl ParameterValue for $rust {
            const TYPE: Type = Type::$type;

            fn parse(text: &str) -> Option<Self> {
                text.trim().parse().ok()
            }
        })*
    };
}

parameter!(bool => Boolean, i32 => Int32, i64 => Int64, f32 => Float32, f64 => Float64);

impl ParameterValue for String {
    const TYPE: Type = Type::Utf8;

    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

/// Reads one parameter; what the derives call.
#[doc(hidden)]
pub fn read<T: ParameterValue>(name: &str, default: Option<&str>) -> Result<T, String> {
    let given = host::parameter(name);
    let text = given.as_deref().or(default).ok_or_else(|| {
        format!("parameter `{name}` is missing: expected a value of type {} in the job file", T::TYPE.name())
    })?;
    T::parse(text).ok_or_else(|| format!("parameter `{name}`: found `{text}`, expected {}", T::TYPE.name()))
}

/// Declares one parameter; what the derives call.
#[doc(hidden)]
pub fn spec<T: ParameterValue>(name: &str, default: Option<&str>, doc: &str) -> ParameterSpec {
    ParameterSpec {
        name: name.to_owned(),
        r#type: T::TYPE,
        default: default.map(str::to_owned),
        doc: doc.to_owned(),
    }
}
