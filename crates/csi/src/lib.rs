//! CSI: what a storage driver, a kubelet and an attacher say to each other, over gRPC on a Unix socket.
//!
//! Promise: the field numbers and method names are those of the specification (csi.v1 as of 1.13, and kubelet's
//! pluginregistration.v1), written by hand: no build script and no protoc. Only what we speak is here; a field that is not
//! is skipped when it is read. No secret is ever printed (I7).
//! Never here: what a driver does, and anything of Kubernetes but the registration of a driver at its kubelet.
//!
//! | room | is |
//! |---|---|
//! | [`messages`] | the messages, and which method each request belongs to |
//! | [`client`] | calls, each with a deadline |
//! | [`server`] | the other side: methods, each with a function that answers |
//!
//! A method is the request that belongs to it: [`Request`] names the path and the reply. A driver with a method of its own,
//! such as an unpublish that fences, needs one more message with one more `impl Request`, and nothing changes here.
#![forbid(unsafe_code)]

pub mod client;
pub mod messages;
pub mod server;

mod request;

pub use client::Client;
pub use request::Request;
pub use server::{Listener, Services};
pub use tonic::{Code, Status};
