//! Properties of test suites and test cases, inserted into a `JUnit` document without any.
//!
//! The document is read and written event by event; all other bytes are unchanged. Only this module
//! uses the `quick-xml` crate.

use std::fmt::Display;
use std::io::{self, Write};

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, Writer};

use super::xml::attribute;

/// A property of a test suite or of a test case.
pub(super) struct Property {
    name: String,
    value: String,
}

impl Property {
    pub(super) fn new(name: impl Into<String>, value: impl Display) -> Self {
        Self {
            name: name.into(),
            value: attribute(&value.to_string()),
        }
    }
}

/// Writes the document to `out` with a `properties` element as the first child of each `testsuite`
/// and `testcase`. `lists` contains the properties of these elements, in the order of the document.
pub(super) fn insert(
    document: &[u8],
    lists: impl IntoIterator<Item = Vec<Property>>,
    out: impl Write,
) -> io::Result<()> {
    let mut lists = lists.into_iter();
    let mut next = || lists.next().expect("there is a list for each element");
    let mut reader = Reader::from_reader(document);
    let mut writer = Writer::new(out);
    loop {
        match reader.read_event().map_err(io::Error::other)? {
            Event::Eof => return Ok(()),
            Event::Start(tag) if has_properties(&tag) => {
                writer.write_event(Event::Start(tag))?;
                write(&mut writer, &next())?;
            }
            Event::Empty(tag) if has_properties(&tag) => {
                writer.write_event(Event::Start(tag.borrow()))?;
                write(&mut writer, &next())?;
                writer.write_event(Event::End(tag.to_end()))?;
            }
            other => writer.write_event(other)?,
        }
    }
}

fn has_properties(tag: &BytesStart<'_>) -> bool {
    matches!(tag.name().as_ref(), b"testsuite" | b"testcase")
}

fn write(writer: &mut Writer<impl Write>, properties: &[Property]) -> io::Result<()> {
    let element = writer.create_element("properties");
    element.write_inner_content(|writer| {
        for Property { name, value } in properties {
            let attributes = [("name", name.as_str()), ("value", value.as_str())];
            let property = writer.create_element("property");
            property.with_attributes(attributes).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Property, insert};

    #[track_caller]
    fn check(document: &str, lists: Vec<Vec<Property>>, expect: &str) {
        let mut out = Vec::new();
        insert(document.as_bytes(), lists, &mut out).expect("well-formed");
        assert_eq!(String::from_utf8_lossy(&out), expect);
    }

    #[test]
    fn properties_come_first_in_suites_and_cases() {
        check(
            "<testsuites><testsuite id=\"0\"><testcase name=\"a\"/><testcase name=\"b\"><skipped/>\
             </testcase></testsuite></testsuites>",
            vec![
                vec![Property::new("passed", 1), Property::new("failed", 0)],
                vec![Property::new("id", "A")],
                vec![Property::new("id", "B")],
            ],
            "<testsuites><testsuite id=\"0\">\
             <properties><property name=\"passed\" value=\"1\"/>\
             <property name=\"failed\" value=\"0\"/></properties>\
             <testcase name=\"a\"><properties><property name=\"id\" value=\"A\"/></properties>\
             </testcase>\
             <testcase name=\"b\"><properties><property name=\"id\" value=\"B\"/></properties>\
             <skipped/></testcase></testsuite></testsuites>",
        );
    }

    #[test]
    fn all_else_stays_as_it_was() {
        let before =
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><testcase name=\"&lt;a> &amp;&quot;\">";
        let after = "<failure message=\"&gt;\"><![CDATA[<testcase>\n  ]]]]><![CDATA[>&amp;]]></failure>\
                     </testcase>\n";
        check(
            &format!("{before}{after}"),
            vec![vec![Property::new("id", "<\n\u{1b}[1m\"")]],
            &format!(
                "{before}<properties><property name=\"id\" value=\"&lt; ¶ &quot;\"/></properties>\
                 {after}"
            ),
        );
    }

    #[test]
    fn what_is_no_xml_is_refused() {
        let inserted = insert(b"<testsuites></testcase>", [], Vec::new());
        assert!(inserted.is_err());
    }
}
