//! Conversion between the CRI's messages, as bytes, and the types of [`history`](super). The only
//! list of the CRI's fields. Pure.
//!
//! Nothing is judged or repaired: a field that a runtime omits stays absent, a wrong one stays
//! wrong.

mod containers;
mod errors;
mod extra;
mod no_event_calls;
mod replies;
mod requests;
mod sandboxes;

use std::collections::HashMap;

use k8s_cri::v1;

pub use errors::{ReplyError, RequestError};
pub use replies::{batches, check_asked, decode_reply};
pub use requests::{decode_request, encode_request};

use crate::history::protobuf::{Message, Unreadable};
use crate::history::{Event, Labels, Request};

/// The runtime service of the CRI.
pub const RUNTIME_SERVICE: &str = "runtime.v1.RuntimeService";
/// The image service of the CRI.
pub const IMAGE_SERVICE: &str = "runtime.v1.ImageService";

/// The methods of [`IMAGE_SERVICE`]; all others are of [`RUNTIME_SERVICE`].
const IMAGE_METHODS: [&str; 5] = [
    "ImageFsInfo",
    "ImageStatus",
    "ListImages",
    "PullImage",
    "RemoveImage",
];

/// Whether a request goes to the image service.
pub fn is_of_images(request: &Request) -> bool {
    IMAGE_METHODS.contains(&request.method())
}

pub fn decode_event(bytes: &[u8]) -> Result<Event, Unreadable> {
    Event::read(bytes)
}

pub fn encode_event(event: &Event) -> Vec<u8> {
    event.to_bytes()
}

fn labels(map: HashMap<String, String>) -> Labels {
    map.into_iter().collect()
}

fn to_map(labels: &Labels) -> HashMap<String, String> {
    labels
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

/// An image by its reference. CRI-O wants what the user wrote as well.
fn image_spec(reference: &str) -> v1::ImageSpec {
    v1::ImageSpec {
        image: reference.to_owned(),
        user_specified_image: reference.to_owned(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use arbitrary::{Arbitrary, Unstructured};
    use proptest::prelude::{any, proptest};

    use super::*;
    use crate::history::{
        ContainerListing, ContainerReport, ImageListing, SandboxListing, SandboxReport, Signal,
    };

    /// Checks that a message of the CRI has all that one of ours has.
    fn check<Own, Generated>(bytes: &[u8], adapt: impl FnOnce(&mut Own))
    where
        Own: for<'a> Arbitrary<'a> + Debug + Message + PartialEq,
        Generated: prost::Message + Default,
    {
        let mut own = Own::arbitrary(&mut Unstructured::new(bytes)).expect("there are bytes");
        adapt(&mut own);
        let generated = Generated::decode(&*own.to_bytes()).expect("it is a message of the CRI");
        assert_eq!(Own::read(&generated.encode_to_vec()), Ok(own));
    }

    proptest! {
        #[test]
        fn messages_are_those_of_the_cri(bytes in proptest::collection::vec(any::<u8>(), 2_000)) {
            check::<Event, v1::ContainerEventResponse>(&bytes, |event| {
                for status in &mut event.containers {
                    status.setup.stop_signal = Signal::DEFAULT; // Which the generated ones lack.
                }
            });
            check::<SandboxReport, v1::PodSandboxStatusResponse>(&bytes, |report| {
                for status in &mut report.containers {
                    status.setup.stop_signal = Signal::DEFAULT;
                }
            });
            check::<ContainerReport, v1::ContainerStatusResponse>(&bytes, |report| {
                report.status.setup.stop_signal = Signal::DEFAULT;
            });
            check::<SandboxListing, v1::PodSandbox>(&bytes, |_| ());
            check::<ContainerListing, v1::Container>(&bytes, |_| ());
            check::<ImageListing, v1::Image>(&bytes, |_| ());
        }
    }
}
