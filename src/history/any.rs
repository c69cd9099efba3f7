//! Arbitrary values of fields that the CRI's messages do not hold in every value of their type.

use std::time::Duration;

use arbitrary::{Result, Unstructured};

use super::Labels;

/// A number that no enum of the CRI defines.
pub(super) fn undefined(from: &mut Unstructured<'_>) -> Result<i32> {
    Ok(i32::from(from.arbitrary::<u16>()?) + 100)
}

/// A time of less than 584 years.
pub(super) fn span(from: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(Duration::from_nanos(from.arbitrary()?))
}

/// The same, or none.
pub(super) fn span_or_none(from: &mut Unstructured<'_>) -> Result<Option<Duration>> {
    Ok(from.arbitrary::<Option<u64>>()?.map(Duration::from_nanos))
}

/// Whole seconds.
pub(super) fn seconds(from: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(Duration::from_secs(from.arbitrary::<u32>()?.into()))
}

/// A limit of memory, which is not 0.
pub(super) fn limit(from: &mut Unstructured<'_>) -> Result<Option<u64>> {
    let limit = from.arbitrary::<Option<u32>>()?;
    Ok(limit.map(|bytes| u64::from(bytes) + 1))
}

/// Texts that are not empty.
pub(super) fn texts(from: &mut Unstructured<'_>) -> Result<Vec<String>> {
    let texts = from.arbitrary::<Vec<String>>()?;
    Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
}

pub(super) fn limits(from: &mut Unstructured<'_>) -> Result<Labels> {
    Ok(resources(from)?.unwrap_or_default())
}

/// Resources that the CRI has a name for.
pub(super) fn resources(from: &mut Unstructured<'_>) -> Result<Option<Labels>> {
    const NUMBERS: [&str; 7] = [
        "cpu_period",
        "cpu_quota",
        "cpu_shares",
        "hugepage_limits.2MB",
        "memory_limit_in_bytes",
        "memory_swap_limit_in_bytes",
        "oom_score_adj",
    ];
    const WORDS: [&str; 3] = ["cpuset_cpus", "cpuset_mems", "unified.memory.oom.group"];
    if !from.arbitrary::<bool>()? {
        return Ok(None);
    }
    let mut set = Labels::new();
    for name in NUMBERS {
        let number: u16 = from.arbitrary()?;
        if number != 0 {
            set.insert(name, number.to_string());
        }
    }
    for name in WORDS {
        let word: &str = from.arbitrary()?;
        if !word.is_empty() {
            set.insert(name, word);
        }
    }
    Ok(Some(set))
}
