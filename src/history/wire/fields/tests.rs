//! A number is what prost takes it for, however long and wherever it stands.

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
use prost::encoding::{decode_varint, encode_varint};

use super::Fields;

/// What is read of these bytes, and how many of them are left; by us and by prost.
fn read_twice(bytes: &[u8]) -> [Option<(u64, usize)>; 2] {
    let (mut fields, mut rest) = (Fields::of(bytes), bytes);
    let ours = fields.varint().map(|number| (number, fields.left()));
    let theirs = decode_varint(&mut rest).ok();
    [ours, theirs.map(|number| (number, rest.len()))]
}

#[test]
fn a_number_of_any_length_is_read() {
    for bits in 0..64 {
        for number in [1 << bits, (1_u64 << bits) - 1, u64::MAX >> bits] {
            for after in [0, 1, 16] {
                let mut bytes = Vec::new();
                encode_varint(number, &mut bytes);
                bytes.extend(std::iter::repeat_n(0xff, after));
                assert_eq!(read_twice(&bytes), [Some((number, after)); 2]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_stands_there_is_read_as_by_prost(
        more in vec(0x80_u8.., 0..12), last in 0_u8..0x80, after in vec(any::<u8>(), 0..12),
    ) {
        let bytes = [more, vec![last], after].concat();
        let [ours, theirs] = read_twice(&bytes);
        prop_assert_eq!(ours, theirs);
    }
}
