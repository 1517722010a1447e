//! What a module contains and what each of its functions reads, makes, carries, keys by and keeps.
//!
//! A module hands it out as JSON; `wit/manifest.schema.json` is its published schema. Optional fields that this
//! version does not know are ignored, so that older hosts run newer modules as long as they can.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DataType, Field, Schema};

/// The manifest version that this host writes and the newest that it reads.
pub const MANIFEST_VERSION: u32 = 1;

/// The manifest of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Manifest {
    /// Version of this format.
    pub manifest: u32,
    /// The module itself.
    pub module: Module,
    /// Its functions.
    pub functions: Vec<Function>,
}

/// Who a module is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Module {
    /// Name under which it is usually pushed.
    pub name: String,
    /// Its own version.
    #[serde(default)]
    pub version: String,
    /// What it is for.
    #[serde(default)]
    pub doc: String,
    /// The SDK that made it, with its version.
    #[serde(default)]
    pub sdk: String,
}

/// One function of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Function {
    /// Unique in its module.
    pub name: String,
    /// The interface behind which it stands.
    pub kind: FunctionKind,
    /// What it does.
    #[serde(default)]
    pub doc: String,
    /// What the job file may set.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// Its input ports.
    pub inputs: Vec<Input>,
    /// The key columns that it sees; they bind to the job file's by position.
    #[serde(default)]
    pub key: Vec<Column>,
    /// Its output ports: the main one first, then the side outputs.
    pub outputs: Vec<Output>,
    /// What it keeps.
    #[serde(default)]
    pub states: Vec<State>,
    /// What an aggregate function keeps for each group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulator: Option<Accumulator>,
    /// The clocks on which it sets timers.
    #[serde(default)]
    pub timers: Vec<Clock>,
    /// The life-cycle calls that it wants.
    #[serde(default)]
    pub lifecycle: Vec<Lifecycle>,
}

/// The interface behind which a function stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FunctionKind {
    /// Rows in, rows out, no keyed state.
    Map,
    /// Keyed rows, state and timers.
    Process,
    /// Incremental aggregation of windows.
    Aggregate,
    /// The whole content of windows.
    Window,
    /// Many calls in flight at once.
    Async,
}

/// A parameter that the job file may set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type; values travel as text.
    #[serde(rename = "type")]
    pub data_type: DataType,
    /// What it is if the job file does not say; without one the job file has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What it means.
    #[serde(default)]
    pub doc: String,
}

/// A column that a function reads, makes or keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub data_type: DataType,
    /// Whether a row may have no value in it.
    #[serde(default)]
    pub nullable: bool,
}

impl Column {
    /// The same column as a stream has it.
    pub fn to_field(&self) -> Field {
        Field { name: self.name.clone(), data_type: self.data_type, nullable: self.nullable }
    }
}

/// An input port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Input {
    /// Its name; that of a single input is usually `input`.
    pub name: String,
    /// How its rows are dealt out to subtasks.
    #[serde(default)]
    pub distribution: Distribution,
    /// The columns read, in the order in which they are sent.
    pub columns: Vec<Column>,
    /// Whether event times are sent too.
    #[serde(default)]
    pub times: bool,
}

/// How an input's rows are dealt out to subtasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// However the job has it.
    #[default]
    Any,
    /// All rows of a key to one subtask.
    Keyed,
    /// Every row to every subtask.
    Broadcast,
}

/// An output port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Output {
    /// Its name; that of the main one is usually `output`.
    pub name: String,
    /// The columns made, in order.
    pub columns: Vec<Column>,
    /// What the host adds to them.
    #[serde(default)]
    pub carry: Carry,
}

/// What the host adds to the columns that a function makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carry {
    /// All columns of the input, read or not; those of timers, windows and groups have the key's.
    Extend,
    /// Nothing.
    #[default]
    Replace,
}

/// A state that a function keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct State {
    /// Unique in its function; the state is kept under it for ever.
    pub name: String,
    /// Its form.
    pub kind: StateKind,
    /// The columns of a value or item.
    pub columns: Vec<Column>,
    /// Version of the schema, which `migration` is asked with.
    #[serde(default = "first_version")]
    pub version: u32,
    /// The earlier versions whose values `migration` takes over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub migrates_from: Vec<u32>,
    /// How operator state is dealt out on a change of parallelism.
    #[serde(default)]
    pub redistribution: Redistribution,
}

/// The form of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateKind {
    /// One value a key.
    Value,
    /// A list a key.
    List,
    /// A map a key.
    Map,
    /// One map, the same in every subtask.
    Broadcast,
    /// Items of a subtask.
    Operator,
}

/// How operator state is dealt out on a change of parallelism.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Redistribution {
    /// Its items are dealt out anew.
    #[default]
    Split,
    /// Every subtask gets all items.
    Union,
}

/// What an aggregate function keeps for each group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Accumulator {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Version of the schema, which `migration` is asked with for a state `windows`.
    #[serde(default = "first_version")]
    pub version: u32,
    /// The earlier versions whose accumulators `migration` takes over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub migrates_from: Vec<u32>,
    /// Whether `merge` merges two of them. Sessions and sliding windows need that.
    #[serde(default = "merges")]
    pub merges: bool,
}

/// A clock on which timers are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The watermark.
    Event,
    /// The machine's time.
    Processing,
    /// The machine's time, for what has not been touched for a while. The host sets these, and no function sees them.
    #[serde(skip)]
    Expiry,
}

/// A life-cycle call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lifecycle {
    /// Before a barrier goes on.
    BeforeBarrier,
    /// When no row will follow.
    EndOfInput,
}

/// A manifest that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not the JSON of a manifest.
    #[error("the manifest is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// Made for a later host.
    #[error(
        "the manifest has version {found}, this host reads up to {MANIFEST_VERSION}: use a newer host or an older SDK"
    )]
    Version {
        /// The version found.
        found: u32,
    },
    /// Something in it contradicts something else.
    #[error("function `{function}` of the manifest {problem}")]
    Function {
        /// The function's name.
        function: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Manifest {
    /// Reads and checks a manifest.
    pub fn parse(json: &str) -> Result<Self, ManifestError> {
        /// Read first, so that a later format is named as such and not as a syntax error.
        #[derive(Deserialize)]
        struct Version {
            manifest: u32,
        }
        let Version { manifest: found } = serde_json::from_str(json)?;
        if found == 0 || found > MANIFEST_VERSION {
            return Err(ManifestError::Version { found });
        }
        let manifest: Manifest = serde_json::from_str(json)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// The function of a name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.name == name)
    }

    fn check(&self) -> Result<(), ManifestError> {
        let mut names = HashSet::new();
        for function in &self.functions {
            let problem = if names.insert(&function.name) {
                function.problem()
            } else {
                Some("is there twice: names are unique in a module".to_owned())
            };
            if let Some(problem) = problem {
                return Err(ManifestError::Function { function: function.name.clone(), problem });
            }
        }
        Ok(())
    }
}

impl Function {
    /// The columns that its output port `index` makes.
    pub fn output_schema(&self, index: usize) -> Option<Schema> {
        self.outputs.get(index).map(|o| schema_of(&o.columns))
    }

    /// What contradicts itself in the declaration, if anything does.
    fn problem(&self) -> Option<String> {
        if self.inputs.is_empty() {
            return Some("has no input port".to_owned());
        }
        if self.kind == FunctionKind::Aggregate && self.accumulator.is_none() {
            return Some("is an aggregate without an accumulator".to_owned());
        }
        let groups = [
            ("input port", repeated(self.inputs.iter().map(|i| &i.name))),
            ("output port", repeated(self.outputs.iter().map(|o| &o.name))),
            ("state", repeated(self.states.iter().map(|s| &s.name))),
            ("parameter", repeated(self.parameters.iter().map(|p| &p.name))),
        ];
        let columns = self.inputs.iter().map(|i| &i.columns).chain(self.outputs.iter().map(|o| &o.columns));
        let columns = columns.chain(self.states.iter().map(|s| &s.columns)).chain([&self.key]);
        let columns =
            columns.filter_map(|c| repeated(c.iter().map(|c| &c.name))).map(|n| ("column", Some(n)));
        let mut all = groups.into_iter().chain(columns);
        all.find_map(|(what, name)| name.map(|n| format!("has two {what}s named `{n}`")))
    }
}

/// A schema of the columns of a manifest.
pub(crate) fn schema_of(columns: &[Column]) -> Schema {
    Schema::new(columns.iter().map(Column::to_field).collect::<Vec<_>>())
}

impl From<&[Column]> for Schema {
    fn from(columns: &[Column]) -> Self {
        schema_of(columns)
    }
}

fn repeated<'a>(names: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = HashSet::new();
    names.into_iter().find(|n| !seen.insert(*n))
}

fn first_version() -> u32 {
    1
}

fn merges() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = r#"{"manifest":1,"module":{"name":"m"},"future":true,"functions":[{"name":"f","kind":"map",
        "inputs":[{"name":"input","columns":[{"name":"x","type":"int64"}]}],
        "outputs":[{"name":"output","columns":[],"carry":"extend"}]}]}"#;

    #[test]
    fn a_short_manifest_takes_the_defaults_and_unknown_fields_are_ignored() {
        let manifest = Manifest::parse(MAP).expect("valid");
        let function = manifest.function("f").expect("there");
        assert_eq!(function.inputs[0].distribution, Distribution::Any);
        assert_eq!(function.outputs[0].carry, Carry::Extend);
        assert!(!function.inputs[0].columns[0].nullable && function.states.is_empty());
        let json = serde_json::to_string(&manifest).expect("plain data");
        assert_eq!(Manifest::parse(&json).expect("its own output"), manifest);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_reason() {
        let refused =
            |from: &str, to: &str| Manifest::parse(&MAP.replace(from, to)).expect_err("refused").to_string();
        assert!(refused("\"manifest\":1", "\"manifest\":2").contains("version 2"));
        assert!(refused("\"type\":\"int64\"", "\"type\":\"int\"").contains("unknown variant `int`"));
        assert_eq!(
            refused("\"kind\":\"map\"", "\"kind\":\"aggregate\""),
            "function `f` of the manifest is an aggregate without an accumulator"
        );
        let twice = r#"{"name":"x","type":"int64"},{"name":"x","type":"utf8"}"#;
        assert!(refused(r#"{"name":"x","type":"int64"}"#, twice).contains("two columns named `x`"));
    }
}
