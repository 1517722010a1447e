//! The known name that was perhaps meant.

/// The name most like `found`, if any is much like it.
pub(crate) fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = found.to_lowercase();
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(&found, &name.to_lowercase());
    let best = known.into_iter().map(|name| (likeness(name), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(likeness, _)| *likeness >= ENOUGH).map(|(_, name)| name)
}

/// ``did you mean `x`?``, or else what there is.
pub(crate) fn suggestion<'a>(
    found: &str,
    what: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(found, known.iter().copied()) {
        Some(name) => Some(format!("did you mean `{name}`?")),
        None if known.is_empty() => None,
        None => Some(format!("{what}: {}", known.join(", "))),
    }
}

/// Share of a name that has to be right.
const ENOUGH: f64 = 0.6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        let known = ["parallelism", "path", "partition"];
        assert_eq!(nearest("paralelism", known), Some("parallelism"));
        assert_eq!(nearest("PATH", known), Some("path"));
        assert_eq!(nearest("window", known), None);
        assert_eq!(
            suggestion("window", "known keys", known),
            Some("known keys: parallelism, path, partition".into())
        );
        assert_eq!(suggestion("x", "known keys", []), None);
    }
}
