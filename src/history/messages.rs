//! Conversion between the CRI's messages, as bytes, and the types of [`history`](super). The only
//! list of the CRI's fields. Pure.
//!
//! Nothing is judged or repaired: a field that a runtime omits stays absent, a wrong one stays
//! wrong.

mod container_setup;
mod containers;
mod errors;
mod extra;
mod no_event_calls;
mod replies;
mod requests;
mod sandboxes;
mod statuses;

use std::collections::HashMap;

use k8s_cri::v1;

pub use errors::{ReplyError, RequestError};
pub use replies::{batches, check_asked, decode_reply, encode_reply};
pub use requests::{decode_request, encode_request};
pub use statuses::{decode_event, encode_event};

use crate::history::{Labels, Request};

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
