//! Prove / cover: do the proofs in force cover everything that this pod could still write to?
//!
//! Promise (I2): a [`Basis`] can only be made here, from proofs that stand now (or from the two declared ways that need no
//! proof beforehand: our attacher's fencing unpublish, and the permission `driverGuard`).
//! Never: counts a network proof alone; looks at health, labels or owners (that is `release`).

use std::collections::BTreeSet;

use super::proof::{Class, Proof, ProofId, Scope};
use crate::fence::{Fence, IsolationKind, IsolationState};
use crate::ident::VolumeName;
use crate::observe::{Access, Mount, Observations, PodSeen, VolumeSeen};
use crate::reason::release::KeepReason;

/// What a release stands on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Basis {
    proofs: BTreeSet<ProofId>,
    unpublish: BTreeSet<VolumeName>,
    guard: bool,
}

impl Basis {
    /// Nothing yet. It stands for nobody.
    const fn empty() -> Self {
        Self { proofs: BTreeSet::new(), unpublish: BTreeSet::new(), guard: false }
    }

    /// Proofs in force when the release was planned. They are read back after the mark.
    pub fn proofs(&self) -> &BTreeSet<ProofId> {
        &self.proofs
    }

    /// Volumes that our attacher unpublishes with fence after the mark: its OK is the read-back.
    pub fn unpublish(&self) -> &BTreeSet<VolumeName> {
        &self.unpublish
    }

    /// The permission `driverGuard` stands for some volume.
    pub fn guard(&self) -> bool {
        self.guard
    }

    /// A basis that an earlier process recorded. `durable` calls this, and nobody else.
    pub(crate) fn recorded(proofs: BTreeSet<ProofId>, unpublish: BTreeSet<VolumeName>, guard: bool) -> Self {
        Self { proofs, unpublish, guard }
    }

    /// Whether every proof that it names still stands.
    pub fn stands(&self, fence: &Fence) -> bool {
        *self != Self::empty() && self.proofs.iter().all(|id| fence.proofs_in_force().any(|proof| proof.id() == *id))
    }
}

/// Whether, and how, a pod is covered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Whatever the node could do is covered: the node lane.
    Node(Basis),
    /// Each of its volumes is covered: the pod lane.
    Volumes(Basis),
    /// It is not.
    Missing(KeepReason),
}

/// Looks for the widest cover first.
pub fn cover(fence: &Fence, pod: &PodSeen, seen: &Observations) -> Coverage {
    let proofs: Vec<&Proof> = fence.proofs_in_force().collect();
    if let Some(whole) = proofs.iter().find(|proof| proof.class().whole_node()) {
        return Coverage::Node(Basis { proofs: BTreeSet::from([whole.id()]), ..Basis::empty() });
    }
    let volumes = match writable_volumes(pod, seen) {
        Ok(volumes) => volumes,
        Err(why) => return Coverage::Missing(why),
    };
    let network = proofs.iter().find(|proof| proof.class() == Class::Network);
    // A volume without a claim may hang on a fabric that no switch port cuts and no provider of ours fences; so may a path of the
    // host. The pod lane says which.
    let claims_only = !pod.mounts.iter().any(|mount| matches!(mount, Mount::HostPath | Mount::InlineNetwork));
    if let (Some(network), Ok(mut basis), false, true) =
        (network, storage_basis(&proofs, &volumes), volumes.is_empty(), claims_only)
    {
        // Neither network nor storage: what is left is the node's own disk, which nobody else reads.
        basis.proofs.insert(network.id());
        return Coverage::Node(basis);
    }
    if !pod.mounts.iter().any(|mount| matches!(mount, Mount::Claim { .. })) && !proofs.is_empty() {
        return Coverage::Missing(KeepReason::NoClaim);
    }
    volumes_basis(fence, &proofs, &volumes, seen).map_or_else(Coverage::Missing, Coverage::Volumes)
}

/// The volumes that the pod could write to, by the PersistentVolume's access modes and the claim's own `readOnly`.
fn writable_volumes<'a>(pod: &PodSeen, seen: &'a Observations) -> Result<Vec<&'a VolumeSeen>, KeepReason> {
    let mut found = Vec::new();
    for mount in &pod.mounts {
        let Mount::Claim { volume, read_only } = mount else { continue };
        let Some(name) = volume else { return Err(KeepReason::Unbound) };
        let Some(volume) = seen.volumes.get(name) else {
            return Err(KeepReason::UnknownVolume { volume: name.to_string() });
        };
        if !read_only && volume.access != Access::ReadOnlyMany {
            found.push(volume);
        }
    }
    Ok(found)
}

fn storage_proof<'a>(proofs: &[&'a Proof], volume: &VolumeSeen) -> Option<&'a Proof> {
    proofs.iter().copied().find(|proof| match (proof.class(), proof.scope()) {
        (Class::Storage, Scope::Provider(provider)) => volume.provider.as_ref() == Some(provider),
        (Class::Storage, Scope::Drivers(drivers)) => {
            volume.driver.as_ref().is_some_and(|driver| drivers.contains(driver))
        }
        (Class::Storage | Class::Driver, Scope::Volume(name)) => volume.name == *name,
        _ => false,
    })
}

fn storage_basis(proofs: &[&Proof], volumes: &[&VolumeSeen]) -> Result<Basis, KeepReason> {
    let mut basis = Basis::empty();
    for volume in volumes {
        let proof = storage_proof(proofs, volume).ok_or_else(|| missing(volume))?;
        basis.proofs.insert(proof.id());
    }
    Ok(basis)
}

fn volumes_basis(
    fence: &Fence,
    proofs: &[&Proof],
    volumes: &[&VolumeSeen],
    seen: &Observations,
) -> Result<Basis, KeepReason> {
    let driver_fences = fence
        .isolations
        .iter()
        .any(|isolation| isolation.kind == IsolationKind::Driver && isolation.state == IsolationState::InForce);
    let mut basis = Basis::empty();
    for volume in volumes {
        if let Some(proof) = storage_proof(proofs, volume) {
            basis.proofs.insert(proof.id());
        } else if driver_fences && volume.driver_fences {
            basis.unpublish.insert(volume.name.clone());
        } else if volume.driver.as_ref().is_some_and(|driver| seen.release.driver_guard.contains(driver)) {
            basis.guard = true;
        } else if proofs.is_empty() && !driver_fences {
            return Err(KeepReason::NoProof);
        } else {
            return Err(missing(volume));
        }
    }
    if basis == Basis::empty() {
        // Nothing to write to is not the same as cut off: it may still answer on the network.
        return Err(KeepReason::NoProof);
    }
    Ok(basis)
}

fn missing(volume: &VolumeSeen) -> KeepReason {
    KeepReason::NotCovered { volume: volume.name.to_string() }
}
