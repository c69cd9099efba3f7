//! Facts read from the kernel.

use super::{CASE, Script};
use crate::history::{Body, HostFact, Resource};

impl Script {
    /// `kills 12` is the count of OOM kills; `held Threads 12` is the amount of a resource.
    #[track_caller]
    pub(super) fn fact(&mut self, words: &[&str]) {
        let number = |text: &str| text.parse().expect("a number");
        let fact = match *words {
            ["kills", count] => HostFact::OomKills(number(count)),
            ["held", name, count] => {
                let mut all = Resource::ALL.iter();
                let resource = all.find(|resource| format!("{resource:?}") == name);
                let (resource, count) = (*resource.expect("a resource"), number(count));
                HostFact::Held { resource, count }
            }
            _ => panic!("not a fact: {words:?}"),
        };
        self.record(Body::Fact { case: CASE, fact });
    }
}
