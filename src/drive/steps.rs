//! The effects of the steps of a case on the runtime, in files of the same families as in
//! `case::steps`. A step gets the context of the case, and nothing else.

mod blocks;
mod calls;
mod context;
mod faults;
mod observe;
mod waits;

use std::future::Future;

use crate::case::{Step, for_each_step};
use crate::history::{CallFault, StatusCode};

pub(super) use context::{Abort, Scope, StepContext};

/// The reference of an image that no runtime has.
const MISSING_IMAGE: &str = "localhost/cri-event-conformance/missing:none";

/// The effect of a step on the runtime.
trait Effect {
    /// Carries the step out, to its end.
    fn perform(&self, ctx: &mut StepContext) -> impl Future<Output = Result<(), Abort>> + Send;
}

macro_rules! define_perform {
    ($($(#[$doc:meta])* $word:literal $variant:ident($shape:ty),)+) => {
        /// Carries a step out, to its end.
        async fn perform(step: &Step, ctx: &mut StepContext) -> Result<(), Abort> {
            match step {
                $(Step::$variant(step) => step.perform(ctx).await,)+
            }
        }
    };
}
for_each_step!(define_perform);

/// Whether the runtime has refused a call. An unanswered one proves nothing.
fn is_refusal(fault: &CallFault) -> bool {
    ![StatusCode::UNAVAILABLE, StatusCode::DEADLINE_EXCEEDED].contains(&fault.code)
}
