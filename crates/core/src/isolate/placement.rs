//! Isolate / placement: where a Job that fences may run.
//!
//! Promise: never on the target, nor on a node that has a fence or a silent lease; another failure domain is preferred,
//! because what killed the target may be about to kill its neighbours.

use crate::ident::NodeName;
use crate::snapshot::Snapshot;

/// Where the executor may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Nodes it must not run on.
    pub never: Vec<NodeName>,
    /// Nodes in another failure domain than the target, among those that are left.
    pub rather: Vec<NodeName>,
    /// Whether any node is left at all.
    pub possible: bool,
}

/// Decides from what is known now.
pub fn placement(target: &NodeName, view: &Snapshot, topology_keys: &[String]) -> Placement {
    let mut placement = Placement::default();
    let home = view.nodes.get(target);
    for (name, node) in &view.nodes {
        if name == target || node.down() || node.deleting || view.fences.contains_key(name) {
            placement.never.push(name.clone());
            continue;
        }
        placement.possible = true;
        let elsewhere = topology_keys.iter().any(|key| {
            let theirs = node.labels.get(key);
            theirs.is_some() && theirs != home.and_then(|home| home.labels.get(key))
        });
        if elsewhere {
            placement.rather.push(name.clone());
        }
    }
    placement
}
