//! Deterministic pseudo-random choices.

/// The splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose choices derive from the seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// An identifier like those of real runtimes: 64 hexadecimal digits.
    pub(super) fn id(&mut self) -> String {
        let parts = [(); 4].map(|()| format!("{:016x}", self.next()));
        parts.concat()
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for left in (1..items.len()).rev() {
            let other = self.next() % (left as u64 + 1);
            items.swap(left, usize::try_from(other).unwrap_or(left));
        }
    }
}
