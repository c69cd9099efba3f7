//! The connection to a runtime: the only module that uses gRPC.
//!
//! A [`Client`] sends a `Request` and returns a `Reply`; a [`Subscription`] records the events of a
//! stream. Every call has a deadline, every message a size limit, and every subscription its own
//! connection unless it requests the client's. [`serve`] does the reverse: it serves the CRI from
//! any [`Backend`]; [`proxy`] passes the calls of other clients to a runtime.

mod client;
mod connect;
mod endpoint;
mod listener;
mod oci;
mod server;
mod subscription;

pub use client::{Client, encode};
pub use connect::ConnectError;
pub use endpoint::{Endpoint, InProcess, SocketError};
pub use listener::{ListenError, Listener};
pub use server::{Backend, Intercept, ServerError, proxy, serve};
pub use subscription::{Over, Subscription, events};
