//! What each step of a case does to the runtime: one file for each step word, named as in
//! `case::steps`. A step gets a context with the case and what surrounds the step, and nothing
//! else.

mod abort;
mod another_client;
mod await_end;
mod await_event;
mod call;
mod calls_return_within;
mod checkpoint;
mod container_id;
mod context;
mod create;
mod exec;
mod fill_disk;
mod for_each_handler;
mod freeze_monitor;
mod kill;
mod kill_monitor;
mod kill_sandbox;
mod list_with_filters;
mod measure;
mod on_event;
mod outside_cri;
mod parallel;
mod pause;
mod poll_during;
mod process_exited;
mod query;
mod relist;
mod remove;
mod remove_sandbox;
mod repeat;
mod restart_runtime;
mod resubscribe;
mod resume;
mod sandbox;
mod scope;
mod signal;
mod start;
mod stays_silent;
mod step_clock;
mod stop;
mod stop_sandbox;
mod subscribe;
mod unsubscribe;
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
