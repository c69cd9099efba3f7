//! Talking to a runtime: the only module that knows gRPC.
//!
//! Everything else asks a [`Client`] for a `Request` and gets a `Reply`, or opens a
//! [`Subscription`] whose events go straight into the recorder. Every call has a deadline, every
//! message a largest size, and every subscription a connection of its own unless it asks for that
//! of the calls. The other way round,
//! [`serve`] makes a CRI server of any [`Backend`].

mod authority;
mod bytes_codec;
mod client;
mod connect;
mod endpoint;
mod faults;
mod line;
mod listener;
mod oci;
mod server;
mod subscription;

pub use client::{Answer, Client, encode};
pub use connect::ConnectError;
pub use endpoint::{Endpoint, EndpointError, InProcess, SocketError};
pub use listener::{ListenError, Listener};
pub use oci::Beneath;
pub use server::{Backend, ServerError, serve};
pub use subscription::{Events, Over, Subscription, events};
