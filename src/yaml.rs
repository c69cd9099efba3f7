//! Reads foreign YAML.
//!
//! Parsing takes quadratic time in the number of flow collections that are open at once, and in
//! that of directives: 200 KB of them took a minute. Therefore their number is limited beforehand.

use serde::de::{DeserializeOwned, Error as _};
use serde_yaml::{Deserializer, Error};

use crate::escape::printable;
use crate::limits::YAML_COLLECTIONS as COLLECTIONS;

/// The reason why a text cannot be read, on one line: the parser quotes the text unescaped.
#[derive(Debug, thiserror::Error)]
#[error("{}", printable(&.0.to_string()))]
pub struct Invalid(pub Error);

/// Reads a text of one document.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Invalid> {
    parser(text).and_then(T::deserialize).map_err(Invalid)
}

pub fn parser(text: &str) -> Result<Deserializer<'_>, Error> {
    // Editors on Windows begin a file with this mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let collections = text.matches(['[', '{']).count();
    let directives = text.lines().filter(|line| line.starts_with('%')).count();
    if collections + directives > COLLECTIONS {
        return Err(Error::custom(format_args!(
            "the text has more than {COLLECTIONS} flow collections (`[` and `{{`) and directives \
             (`%`); write it with fewer, or as several files"
        )));
    }
    Ok(Deserializer::from_str(text))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_would_be_parsed_in_quadratic_time_is_refused() {
        for (part, separator) in [("[", ""), ("a: {", ""), ("[a", ","), ("%TAG !a! b", "\n")] {
            let text = vec![part; COLLECTIONS + 1].join(separator);
            let fault = read::<Value>(&text).unwrap_err().to_string();
            assert!(
                fault.contains("more than 10000 flow collections"),
                "{fault}"
            );
        }
        let many = format!("[{}]", vec!["[]"; COLLECTIONS - 1].join(","));
        let read = read::<Value>(&many).unwrap();
        assert_eq!(read.as_array().map(Vec::len), Some(COLLECTIONS - 1));
    }
}
