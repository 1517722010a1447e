//! What nothing reads: an error where rows would be lost that somebody asked for, else a warning.

use super::{Drafts, draft::DEAD_LETTER};
use crate::{
    LogicalModule, RowPolicy,
    job_file::{NodeTableBody, Work},
    problem::Problem,
};

pub(super) fn check(drafts: &Drafts<'_>, modules: &[Option<LogicalModule>]) {
    let file = drafts.file;
    if !file.nodes.iter().any(|n| matches!(n.body, NodeTableBody::Source(_))) {
        let problem = Problem::error("the job has no source, so there is nothing to do");
        file.problems.push(problem.help("[source.NAME] with a `connector` reads rows"));
    }
    for index in 0..file.nodes.len() {
        dead_letters(drafts, index);
        node(drafts, index);
    }
    for (module, _) in file.modules.iter().zip(modules).filter(|(_, resolved)| resolved.is_some()) {
        if !is_called(drafts, &module.name.value) {
            let message = format!("no operator uses the module `{}`", module.name.value);
            file.problems.push(Problem::warning(message).at(&module.name.span, "not used"));
        }
    }
}

/// Rows that go to the dead letters have to go somewhere.
fn dead_letters(drafts: &Drafts<'_>, index: usize) {
    let node = drafts.node(index);
    let Some(policy) = node.on_error().filter(|p| p.value == RowPolicy::DeadLetter) else { return };
    let is_dead_letter = |port: &Option<String>| port.as_deref() == Some(DEAD_LETTER);
    if drafts.wires_out_of(index).any(|w| is_dead_letter(&w.stream.value.port)) {
        return;
    }
    let name = &node.name.value;
    let message = format!("nothing reads `{name}.{DEAD_LETTER}`, where rows go that cannot be used");
    let problem = Problem::error(message).at(&policy.span, "sends them there");
    let help = format!("add a sink with input = \"{name}.{DEAD_LETTER}\", or set `on-error = \"skip\"`");
    drafts.problems().push(problem.help(help));
}

fn node(drafts: &Drafts<'_>, index: usize) {
    let node = drafts.node(index);
    let is_sink = matches!(node.body, NodeTableBody::Sink(_));
    if is_sink || drafts.wires_out_of(index).next().is_some() {
        return;
    }
    let message =
        format!("nothing reads from the {} `{}`: its rows are dropped", node.kind(), node.name.value);
    drafts.problems().push(Problem::warning(message).at(&node.name.span, "not read"));
}

fn is_called(drafts: &Drafts<'_>, name: &str) -> bool {
    drafts.file.nodes.iter().any(|node| match &node.body {
        NodeTableBody::Operator(operator) => {
            matches!(&operator.work, Some(Work::Function { module, .. }) if module == name)
        }
        _ => false,
    })
}
