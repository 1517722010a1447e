//! Which changes of the columns of stored rows the host takes over by itself.

use millstream_types::Column;

/// What has to be changed to make rows of `found` rows of `wanted`, in words; nothing if they are the same. The error says
/// what cannot be, and what to do.
pub(crate) fn evolve(found: &[Column], wanted: &[Column]) -> Result<Vec<String>, String> {
    if found == wanted {
        return Ok(Vec::new());
    }
    let mut changes = Vec::new();
    for column in wanted {
        match found.iter().find(|old| old.name == column.name) {
            Some(old) => changes.extend(change(old, column)?),
            None if column.nullable => changes.push(format!("`{}` is new and null", column.name)),
            None => {
                return Err(format!(
                    "`{}` is new and not nullable: make it nullable, or give the module a migration",
                    column.name
                ));
            }
        }
    }
    let removed = found.iter().filter(|old| wanted.iter().all(|column| column.name != old.name));
    changes.extend(removed.map(|old| format!("`{}` is left out", old.name)));
    if changes.is_empty() {
        changes.push("columns in another order".to_owned());
    }
    Ok(changes)
}

fn change(old: &Column, new: &Column) -> Result<Option<String>, String> {
    let (name, from, to) = (&new.name, old.data_type, new.data_type);
    if !from.widens_to(to) {
        return Err(format!(
            "`{name}` is {from} and cannot become {to} by itself: give the module a migration"
        ));
    }
    if old.nullable && !new.nullable {
        return Err(format!("`{name}` may be null in the snapshot, and the job does not allow that"));
    }
    let text = match (from == to, old.nullable == new.nullable) {
        (true, true) => return Ok(None),
        (true, false) => format!("`{name}` may be null"),
        (false, _) => format!("`{name}` from {from} to {to}"),
    };
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use millstream_types::Field;

    use super::*;

    fn columns(text: &str) -> Vec<Column> {
        let column = |text: &str| {
            let (name, data_type) = text.trim().split_once(' ').expect("a name and a type");
            let field = Field::parse(name, data_type).expect("a type");
            Column { name: field.name, data_type: field.data_type, nullable: field.nullable }
        };
        text.split(',').map(column).collect()
    }

    fn check(found: &str, wanted: &str, expected: Result<&str, &str>) {
        let changes = evolve(&columns(found), &columns(wanted)).map(|changes| changes.join(", "));
        assert_eq!(changes, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn what_loses_nothing_is_taken_over() {
        check("a int32, b utf8", "a int32, b utf8", Ok(""));
        check(
            "a int32, b float32",
            "a int64, b float64?",
            Ok("`a` from int32 to int64, `b` from float32 to float64"),
        );
        check("a int32", "a int32, b utf8?", Ok("`b` is new and null"));
        check("a int32, b utf8", "b utf8?", Ok("`b` may be null, `a` is left out"));
        check("a int32, b utf8", "b utf8, a int32", Ok("columns in another order"));
    }

    #[test]
    fn anything_else_needs_a_migration() {
        let migration = "give the module a migration";
        let narrow = format!("`a` is int64 and cannot become int32 by itself: {migration}");
        check("a int64", "a int32", Err(&narrow));
        let text = format!("`a` is int64 and cannot become utf8 by itself: {migration}");
        check("a int64", "a utf8", Err(&text));
        let new = format!("`b` is new and not nullable: make it nullable, or {migration}");
        check("a int64", "a int64, b utf8", Err(&new));
        check("a int64?", "a int64", Err("`a` may be null in the snapshot, and the job does not allow that"));
    }
}
