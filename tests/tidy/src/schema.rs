//! The published schema of module manifests is that of the type that reads them.

use std::fs;

use millstream_types::Manifest;

use crate::repository::Repository;

const PATH: &str = "wit/manifest.schema.json";

/// `UPDATE=1 cargo test -p millstream-tidy` writes it anew.
#[test]
fn the_published_manifest_schema_is_the_one_that_is_read() {
    let repository = Repository::open();
    let mut schema = schemars::schema_for!(Manifest);
    schema.insert("title".to_owned(), "Manifest of a Millstream module".into());
    let expected = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        fs::write(repository.root().join(PATH), &expected).expect("the folder is there");
    }
    let found = repository.text(PATH).unwrap_or_default();
    assert!(
        found == expected,
        "{PATH} is not the schema of millstream_types::Manifest; run `UPDATE=1 cargo test -p millstream-tidy`"
    );
}
