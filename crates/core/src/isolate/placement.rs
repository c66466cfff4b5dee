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
    /// Failure domains of the target, as labels and their values: rather somewhere else.
    pub away_from: Vec<(String, String)>,
    /// Whether any node is left at all.
    pub possible: bool,
}

/// Decides from what is known now.
pub fn placement(target: &NodeName, view: &Snapshot, topology_keys: &[String]) -> Placement {
    // The target in any case, though its Node may be gone: an empty list would keep the pod from every node.
    let mut placement = Placement { never: vec![target.clone()], ..Placement::default() };
    for (name, node) in view.nodes.iter().filter(|(name, _)| *name != target) {
        if node.down() || node.deleting || view.fences.contains_key(name) {
            placement.never.push(name.clone());
        } else {
            placement.possible = true;
        }
    }
    let home = view.nodes.get(target);
    let label = |key: &String| Some((key.clone(), home?.labels.get(key)?.clone()));
    placement.away_from = topology_keys.iter().filter_map(label).collect();
    placement
}
