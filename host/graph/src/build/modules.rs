//! Modules and the functions in them.

use std::{path::Path, sync::Arc};

use millstream_types::{Distribution, Function, FunctionKind, StateKind};

use super::RESERVED_PORTS;
use crate::{
    JobFile, LogicalModule, ModuleResolver,
    nearest::suggestion,
    problem::{Problem, Problems},
    source_text::Span,
};

/// The modules of the file, each with its place; those that cannot be had are none.
pub(super) fn resolve(file: &JobFile, resolver: &dyn ModuleResolver) -> Vec<Option<LogicalModule>> {
    let folder = file.source.path().parent().unwrap_or(Path::new(""));
    let resolve = |table: &crate::job_file::ModuleTable| {
        let path = table.path.as_ref()?;
        let full = folder.join(&path.value);
        match resolver.resolve_named(&table.name.value, &full) {
            Ok(manifest) => Some(LogicalModule { name: table.name.value.clone(), path: full, manifest }),
            Err(error) => {
                let message = format!("the module `{}` cannot be used: {error}", table.name.value);
                file.problems.push(Problem::error(message).at(&path.span, "this module"));
                None
            }
        }
    };
    file.modules.iter().map(resolve).collect()
}

/// The function of a name such as `module.function`, with the position of its module.
pub(super) fn function(
    file: &JobFile,
    modules: &[Option<LogicalModule>],
    (module, name): (&str, &str),
    span: &Span,
) -> Option<(usize, Arc<Function>)> {
    let Some(index) = file.modules.iter().position(|m| m.name.value == module) else {
        let names = file.modules.iter().map(|m| m.name.value.as_str());
        let help = suggestion(module, "there are", names)
            .unwrap_or_else(|| format!("add\n[module.{module}]\npath = \"...\""));
        let problem = Problem::error(format!("there is no module `{module}`"));
        file.problems.push(problem.at(span, "not a module").help(help));
        return None;
    };
    let resolved = modules[index].as_ref()?;
    let Some(function) = resolved.manifest.function(name) else {
        let names = resolved.manifest.functions.iter().map(|f| f.name.as_str());
        let message = format!("the module `{module}` has no function `{name}`");
        let help = suggestion(name, "it has", names);
        file.problems.push(Problem::error(message).at(span, "not a function").maybe_help(help));
        return None;
    };
    available(function, span, &file.problems).then(|| (index, Arc::new(function.clone())))
}

/// Whether this version can run a function at all.
fn available(function: &Function, span: &Span, problems: &Problems) -> bool {
    let what = if function.kind == FunctionKind::Async {
        "asynchronous functions are"
    } else if function.inputs.iter().any(|i| i.distribution == Distribution::Broadcast) {
        "broadcast inputs are"
    } else if function.inputs.len() > 1 {
        "functions with several inputs are"
    } else if function.states.iter().any(|s| s.kind == StateKind::Broadcast) {
        "broadcast states are"
    } else if let Some(port) = function.outputs.iter().find(|o| RESERVED_PORTS.contains(&o.name.as_str())) {
        let message =
            format!("`{}` has an output port `{}`, a name that is reserved", function.name, port.name);
        problems.push(Problem::error(message).at(span, "this function"));
        return false;
    } else {
        return true;
    };
    let message = format!("`{}` cannot run: {what} not available in this version", function.name);
    problems.push(Problem::error(message).at(span, "this function"));
    false
}
