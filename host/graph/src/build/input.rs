//! The rows that come in at an input port: those of one stream, or of several with the same columns.

use millstream_types::{Field, Schema};

use super::{Drafts, wiring::Wire};
use crate::{InputPort, problem::Problem};

/// An input port of a node, if the columns of its streams are known and the same.
pub(super) fn port(drafts: &Drafts<'_>, index: usize, input: usize, name: &str) -> Option<InputPort> {
    let wires: Vec<&Wire> = drafts.wires_into(index).filter(|w| w.input == input).collect();
    // Asked of every wire, as this is where ports that do not exist are reported.
    let schemas: Vec<Option<&Schema>> = wires.iter().map(|w| drafts.schema(w)).collect();
    let streams = drafts.node(index).inputs().get(input).map_or(0, |i| i.streams.len());
    let mut known = wires.iter().zip(&schemas).filter_map(|(w, s)| s.map(|s| (*w, s)));
    let (first, schema) = known.next()?;
    let mut fields = schema.fields().to_vec();
    let mut same = true;
    for (wire, other) in known {
        same &= union(drafts, &mut fields, (first, schema), (wire, other));
    }
    let complete = same && wires.len() == streams && schemas.iter().all(Option::is_some);
    complete.then(|| InputPort { name: name.to_owned(), schema: Schema::new(fields) })
}

/// How messages name what a node reads.
pub(super) fn stream_names(drafts: &Drafts<'_>, index: usize) -> String {
    let names: Vec<String> = drafts.wires_into(index).map(|w| format!("`{}`", w.stream.value)).collect();
    names.join(", ")
}

/// Adds the nulls of another stream to the columns of the first, if they are the same columns otherwise.
fn union(
    drafts: &Drafts<'_>,
    fields: &mut [Field],
    first: (&Wire, &Schema),
    other: (&Wire, &Schema),
) -> bool {
    let (a, b) = (first.1.fields(), other.1.fields());
    let same = |(a, b): (&Field, &Field)| a.name == b.name && a.data_type == b.data_type;
    let difference = (0..a.len().max(b.len())).find(|&i| !a.get(i).zip(b.get(i)).is_some_and(same));
    if let Some(column) = difference {
        let text = |fields: &[Field]| fields.get(column).map_or("missing".to_owned(), |f| format!("`{f}`"));
        let (first_name, other_name) = (&first.0.stream.value, &other.0.stream.value);
        let message = format!(
            "`{first_name}` and `{other_name}` cannot be one input, as their columns differ: column {} is {} there and {} here",
            column + 1,
            text(a),
            text(b)
        );
        let problem =
            Problem::error(message).at(&other.0.stream.span, "here").at(&first.0.stream.span, "there");
        drafts.problems().push(problem.help("streams of one input have the same columns in the same order"));
        return false;
    }
    fields.iter_mut().zip(b).for_each(|(field, b)| field.nullable |= b.nullable);
    true
}
