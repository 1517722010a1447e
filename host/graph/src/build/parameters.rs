//! The values of a function's parameters.

use std::collections::BTreeMap;

use millstream_types::Function;

use super::Drafts;
use crate::{
    job_file::{OperatorTable, expected},
    nearest::{nearest, suggestion},
    problem::Problem,
    source_text::Span,
};

/// All that the function declares, as text; none if something is wrong, which is reported.
pub(super) fn resolve(
    drafts: &Drafts<'_>,
    table: &OperatorTable,
    function: &Function,
    span: &Span,
) -> Option<BTreeMap<String, String>> {
    let mut good = true;
    let mut meant = Vec::new();
    let mut values = BTreeMap::new();
    for (name, value) in &table.parameters {
        let Some(declared) = function.parameters.iter().find(|p| p.name == name.value) else {
            let message = format!("`{}` has no parameter `{}`", function.name, name.value);
            let names = || function.parameters.iter().map(|p| p.name.as_str());
            meant.extend(nearest(&name.value, names()));
            let help = suggestion(&name.value, "it has", names());
            drafts.problems().push(Problem::error(message).at(&name.span, "not known").maybe_help(help));
            good = false;
            continue;
        };
        let Some(value) = value else {
            good = false;
            continue;
        };
        let Some(text) = value.value.to_text(declared.data_type) else {
            let (found, expected) = (value.value.describe(), expected(declared.data_type));
            let message = format!(
                "the parameter `{}` of `{}` is {found}: expected {expected}",
                name.value, function.name
            );
            drafts
                .problems()
                .push(Problem::error(message).at(&value.span, format!("not {}", declared.data_type)));
            good = false;
            continue;
        };
        values.insert(name.value.clone(), text);
    }
    for parameter in &function.parameters {
        let given = table.parameters.iter().any(|(name, _)| name.value == parameter.name);
        if given || meant.contains(&parameter.name.as_str()) {
            continue;
        }
        let Some(default) = &parameter.default else {
            let message =
                format!("`{}` needs the parameter `{}`, which has no default", function.name, parameter.name);
            let help =
                format!("parameters = {{ {} = ... }}: {}", parameter.name, expected(parameter.data_type));
            drafts.problems().push(Problem::error(message).at(span, "lacks a parameter").help(help));
            good = false;
            continue;
        };
        values.insert(parameter.name.clone(), default.clone());
    }
    good.then_some(values)
}
