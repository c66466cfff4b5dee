//! San: the shared storage of the lab, as a CSI driver with a truth of its own.
//!
//! A SAN is a directory on the host. Every machine of the lab sees it, as every server sees the fabric; which volume a machine
//! may *use* is what the SAN decides, and what it writes down: the truth, which no belief of an operator can change.
//!
//! Promise: a volume for one node is published to one node at a time, whoever asks and however many processes there are. A
//! node that a volume is not published to can neither stage nor publish it: the array does not show it the LUN.
//! Not promised: to tear a volume from a node that has it mounted already. Unpublishing here is like unmapping on an array
//! that lets open sessions finish, and whoever relies on more has to prove it by other means.
//!
//! | room | is |
//! |---|---|
//! | [`truth`] | the directory: volumes, nodes, who has what, and a log of it all |
//! | `controller` | the Controller service: rules over the truth |
//! | `node` | the Node service: bind mounts, as far as the truth allows |
//! | `identity` | who the driver is |
//! | `serve` | services on sockets |
//! | [`provision`] | PersistentVolumes for claims, as external-provisioner makes them |
//!
//! ```text
//! <san>/lock             held by whoever changes a volume
//! <san>/volumes/<id>/    the data
//! <san>/state/<id>.json  what a volume is, and to which nodes it is published
//! <san>/nodes/<id>.json  nodes that the SAN knows
//! <san>/truth.log        one line of JSON for each event
//! ```
#![forbid(unsafe_code)]

mod controller;
mod identity;
mod node;
mod serve;

pub mod provision;
pub mod truth;

pub use serve::{serve_controller, serve_node};
pub use truth::{Event, What, events, published, register_node};

/// The name of the driver.
pub const DRIVER: &str = "lab.palisade.dev";
