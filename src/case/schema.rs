//! The shape of a case file as a JSON Schema, for editors: made of the types that read the file, so
//! that it follows the vocabulary. Knows nothing of what a case means; [`super::parse()`] does.

use schemars::Schema;
use schemars::generate::SchemaSettings;

use super::file::CaseFile;

/// The JSON Schema (2020-12) of a case file. It takes every case of the catalogue, and refuses
/// files with unknown keys and words, wrong types, and keys that are missing.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    settings.into_generator().into_root_schema_for::<CaseFile>()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use expect_test::expect_file;
    use serde_json::Value;
    use serde_yaml::with::singleton_map_recursive;

    use super::schema;
    use crate::case::file::CaseFile;
    use crate::case::{load, parse};

    fn takes(text: &str) -> bool {
        let schema = serde_json::to_value(schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let file: Value = serde_yaml::from_str(text).unwrap();
        validator.is_valid(&file)
    }

    fn reads(text: &str) -> bool {
        let from = serde_yaml::Deserializer::from_str(text);
        singleton_map_recursive::deserialize::<CaseFile, _>(from).is_ok()
    }

    /// `UPDATE_EXPECT=1 cargo test --lib schema` writes it.
    #[test]
    fn the_schema_is_that_of_the_types() {
        let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        expect_file!["../../cases/schema.json"].assert_eq(&text);
    }

    #[test]
    fn every_case_has_the_shape() {
        for case in load::embedded().unwrap() {
            assert!(takes(&case.definition), "{}", case.name);
        }
    }

    #[test]
    fn what_cannot_be_read_has_not_the_shape() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/bad-cases");
        let mut refused = 0;
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|kind| kind != "yaml") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            // A schema has no say where the text is no YAML, such as where a key stands twice.
            if serde_yaml::from_str::<serde_yaml::Value>(&text).is_err() {
                continue;
            }
            let (taken, name) = (takes(&text), path.display());
            assert!(reads(&text) || !taken, "{name} cannot be read");
            assert!(taken || parse(&path, &text).is_err(), "{name} is right");
            refused += usize::from(!taken);
        }
        assert!(refused > 15, "{refused} bad cases have a wrong shape");
    }

    #[test]
    fn durations_and_numbers_are_written_as_they_are_read() {
        let case = |time: &str, code: &str| {
            format!(
                "{{id: ORD-01, title: A., why: b, sources: [c], levels: {{cache: must}}, steps: [\
                 create: {{as: c, in: pod, workload: {{exit: {{code: {code}, after: {time}}}}}}}]}}"
            )
        };
        for time in [
            "300ms", "1m 30s", "2s", "1h", "500us", "item", "0s", "2 min", "1.5s",
        ] {
            let text = case(time, "0");
            assert!(takes(&text) && reads(&text), "{time}");
        }
        for time in ["300", "'300'", "soon", "ms", "''", "2s!", "items", "-1s"] {
            let text = case(time, "0");
            assert!(!takes(&text) && !reads(&text), "{time}");
        }
        for code in ["255", "item"] {
            let text = case("1s", code);
            assert!(takes(&text) && reads(&text), "{code}");
        }
        for code in ["256", "-1", "'7'", "items", "1.5"] {
            let text = case("1s", code);
            assert!(!takes(&text) && !reads(&text), "{code}");
        }
    }
}
