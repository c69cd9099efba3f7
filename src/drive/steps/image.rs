//! Making a call to the image service.

use super::{Abort, Effect, MISSING_IMAGE, StepContext};
use crate::case::ImageStep;
use crate::history::Request;

impl Effect for ImageStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let image = ctx.session().options().image.clone();
        let request = match self {
            ImageStep::Pull => {
                // An image that was imported cannot be pulled.
                let _ = ctx.case.call(Request::PullImage(image)).await;
                return Ok(());
            }
            ImageStep::LookUp => Request::ImageStatus(image),
            ImageStep::List => Request::ListImages,
            ImageStep::RemoveMissing => Request::RemoveImage(MISSING_IMAGE.to_owned()),
        };
        ctx.must(request).await.map(drop)
    }
}
