//! Release / groups: pods that share a claim which is not ReadWriteMany go together, or not at all.
//!
//! Promise (I1): half a group is never released; the other half would still write beside the replacement.

use std::collections::BTreeMap;

use crate::ident::VolumeName;
use crate::observe::{Access, Mount, Observations, PodSeen};
use crate::planted::{self, Bug};

/// Numbers the groups, in the order of `pods`: pods with the same number share a claim, directly or through others.
/// Pods that have run to their end write nothing, and bind nobody.
pub fn groups(pods: &[PodSeen], seen: &Observations) -> Vec<usize> {
    let mut parent: Vec<usize> = (0..pods.len()).collect();
    let mut first_user: BTreeMap<VolumeName, usize> = BTreeMap::new();
    if planted::is(Bug::HalfAGroup) {
        return parent;
    }
    for (index, pod) in pods.iter().enumerate().filter(|(_, pod)| !pod.completed) {
        for volume in shared_volumes(pod, seen) {
            let other = *first_user.entry(volume).or_insert(index);
            let (a, b) = (root(&parent, index), root(&parent, other));
            parent[a.max(b)] = a.min(b);
        }
    }
    (0..pods.len()).map(|index| root(&parent, index)).collect()
}

fn root(parent: &[usize], mut at: usize) -> usize {
    while parent[at] != at {
        at = parent[at];
    }
    at
}

/// The volumes that bind a pod to others. One that nobody could find binds by its PersistentVolume's name.
fn shared_volumes(pod: &PodSeen, seen: &Observations) -> Vec<VolumeName> {
    let mut found = Vec::new();
    for mount in &pod.mounts {
        let Mount::Claim { volume: Some(name), .. } = mount else { continue };
        match seen.volumes.get(name) {
            Some(volume) if volume.access == Access::ReadWriteMany => {}
            Some(volume) => found.push(volume.name.clone()),
            None => found.push(VolumeName::new(name.clone())),
        }
    }
    found
}
