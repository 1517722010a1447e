//! Names and ids are unique: a name because streams are named by it, an id because state is kept under it.

use std::collections::HashMap;

use crate::{JobFile, document::Spanned, problem::Problem};

pub(super) fn check(file: &JobFile) {
    let kinds: HashMap<_, _> = file.nodes.iter().map(|n| (&n.name.span, n.kind())).collect();
    unique(file, file.nodes.iter().map(|n| &n.name), |first, again| {
        let (first, again) = (kinds[&first.span], kinds[&again.span]);
        format!("the {first} has this name, so the {again} needs another")
    });
    unique(file, file.nodes.iter().filter(|n| n.id.is_some()).map(|n| n.identity()), |_, _| {
        "state is kept under the id, so each operator needs its own".to_owned()
    });
    for node in &file.nodes {
        let Some(id) = &node.id else { continue };
        let other = file.nodes.iter().find(|n| n.id.is_none() && n.name.value == id.value);
        if let Some(other) = other {
            let message = format!("the id `{}` is that of the {} of this name", id.value, other.kind());
            file.problems
                .push(Problem::error(message).at(&id.span, "the id").at(&other.name.span, "the name"));
        }
    }
}

fn unique<'a>(
    file: &JobFile,
    names: impl Iterator<Item = &'a Spanned<String>>,
    why: impl Fn(&Spanned<String>, &Spanned<String>) -> String,
) {
    let mut seen: HashMap<&str, &Spanned<String>> = HashMap::new();
    for name in names {
        if let Some(first) = seen.insert(&name.value, name) {
            let problem = Problem::error(format!("`{}` is there twice: {}", name.value, why(first, name)));
            file.problems.push(problem.at(&name.span, "again").at(&first.span, "first"));
        }
    }
}
