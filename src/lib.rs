//! Conformance tests for the CRI event stream.
