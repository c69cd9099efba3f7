//! What the steps of a case do to the runtime: their effects, in files of the same families as in
//! `case::steps`. A step gets a context with the case and what surrounds the step, and nothing
//! else.

mod abort;
mod blocks;
mod calls;
mod context;
mod create;
mod faults;
mod observe;
mod scope;
mod streams;
mod waits;
mod workload;

use std::future::Future;

use crate::case::{Step, for_each_step};
use crate::history::{CallFault, StatusCode};

pub(super) use abort::Abort;
pub(super) use context::StepContext;
pub(super) use scope::Scope;

/// The reference of an image that no runtime has.
const MISSING_IMAGE: &str = "localhost/cri-event-conformance/missing:none";

/// What a step does to the runtime.
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
