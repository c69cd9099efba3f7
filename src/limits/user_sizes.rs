//! Sizes given by the user.

/// The units and their sizes in bytes.
const UNITS: [(&str, u64); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
/// The minimum size for rotating a file.
const SMALLEST: u64 = 64 << 10;
/// The maximum size, that of any history.
const LARGEST: u64 = super::HISTORY_FILE_BYTES;

/// Parses a file size such as `64MiB`. Fails if it is not a number with one of the units, or below
/// 64 KiB or above 1 GiB.
pub fn size(text: &str) -> Result<u64, String> {
    let of_unit = |(unit, bytes): (&str, u64)| {
        let number = text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?;
        number.checked_mul(bytes)
    };
    let size = UNITS.into_iter().find_map(of_unit);
    let size = size.ok_or("write it as 512KiB, 64MiB or 1GiB")?;
    if (SMALLEST..=LARGEST).contains(&size) {
        Ok(size)
    } else {
        Err("it must be from 64KiB to 1GiB".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_bounds() {
        assert_eq!(size("64KiB"), Ok(64 << 10));
        assert_eq!(size("1 GiB"), Ok(1 << 30));
        for text in [
            "63KiB",
            "2GiB",
            "64",
            "MiB",
            "-1MiB",
            "99999999999999999999GiB",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
