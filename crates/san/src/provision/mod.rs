//! Provision: a PersistentVolume for each claim that asks this SAN for one, as external-provisioner makes them.
//!
//! Promise: one volume and one PersistentVolume per claim (both are named after the claim's UID), however often it is tried
//! and wherever it stops. A volume is destroyed only when its PersistentVolume was released and says `Delete`; its
//! PersistentVolume goes after it.
//! Left out, as the lab does not need it: topology, snapshots, growing, several replicas.

mod claims;
mod quantity;
mod run;
mod watch;

pub use run::run;
