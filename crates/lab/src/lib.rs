//! Lab: a real Kubernetes on one machine, whose machines a BMC can really switch off.
//!
//! | room | is |
//! |---|---|
//! | [`run`] | the number of a lab, and every name and address that follows from it |
//! | [`kubernetes`] | the components of Kubernetes in one binary, built once |
//! | [`control_plane`] | etcd, API server, controller manager, scheduler |
//! | [`machine`] | namespaces with a kubelet and a containerd, which can be switched off |
//! | [`network`] | the bridge, and the links that can be cut |
//! | [`bmc`] | a Redfish service per machine, honest or not |
//! | [`ipmi`] | the same BMCs over IPMI, by a simulator of somebody else's |
//! | [`image`] | what containers run |
//! | [`install`] | what an administrator applies |
//! | [`lab`] | all of it, up and down |
//! | [`leftovers`] | whatever is still there, by its name |
//! | [`interrupt`] | somebody wants it to end |
//! | [`ruins`] | that this is so after a crash, too |
//! | [`world`] | the lab as a world for stories |
//! | [`stories`] | which stories are told here |
//! | `deployed` | Palisade as users deploy it |
//! | [`surroundings`] | what Palisade stands on breaks |
//! | [`trial`] | the tests of the lab |
//! | [`audit`] | what Palisade asked the API server for, and what it may |
//! | [`measure`] | how long a failover takes |
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the lab lives in real time")]

pub mod audit;
pub mod bmc;
pub mod control_plane;
pub mod daemon;
mod deployed;
pub mod image;
pub mod install;
pub mod interrupt;
pub mod ipmi;
pub mod kubernetes;
pub mod lab;
pub mod leftovers;
pub mod machine;
pub mod measure;
pub mod network;
pub mod objects;
pub mod papers;
pub mod ruins;
pub mod run;
pub mod stories;
pub mod surroundings;
pub mod tool;
pub mod trial;
pub mod world;
