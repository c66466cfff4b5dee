//! Decide: one attachment and what is known around it in, what to do next out. Pure.
//!
//! It is asked again after each thing that was done, with the object as it is then. So there is no step to remember: whoever
//! takes over after a crash asks the same question.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeSpec, SecretReference};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt;
use palisade_csi::messages::volume::VolumeCapability;

use crate::capability;
use crate::names::{NODE_ID, VOLUME_HANDLE};

/// What the driver says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Its name.
    pub(crate) name: String,
    /// The finalizer of its attacher.
    pub(crate) finalizer: String,
    /// It can publish for reading only.
    pub(crate) publishes_readonly: bool,
    /// It tells one workload on a node from many.
    pub(crate) tells_writers: bool,
}

/// What is known around an attachment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// The PersistentVolume that it names, if that is there.
    pub(crate) volume: Option<&'a PersistentVolume>,
    /// The node ID that the driver has on its node, if it is registered there.
    pub(crate) node_id: Option<&'a str>,
    /// The driver.
    pub(crate) driver: &'a Traits,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing: it is as it should be.
    Rest,
    /// Keep the PersistentVolume from going away while it is attached.
    GuardVolume,
    /// Write down what is about to be published, and where.
    Record(Intent),
    /// Unpublish what may have been published under an older node ID, then write down the new one.
    Move(Unpublish, Intent),
    /// Ask the driver to publish.
    Publish(Box<Publish>),
    /// Ask the driver to unpublish, then let the attachment go.
    Unpublish(Unpublish),
    /// It cannot go on until something else changes.
    Blocked(Obstacle),
}

impl Next {
    /// Whether this asks something of the driver, or gives up. Neither is done on the word of a cache.
    pub(crate) fn needs_live_facts(&self) -> bool {
        match self {
            Self::Publish(_) | Self::Unpublish(_) | Self::Move(..) | Self::Blocked(_) => true,
            Self::Rest | Self::GuardVolume | Self::Record(_) => false,
        }
    }
}

/// What is about to be published, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) node_id: String,
    pub(crate) volume_handle: String,
}

/// A volume to publish.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Publish {
    pub(crate) volume_handle: String,
    pub(crate) node_id: String,
    pub(crate) capability: VolumeCapability,
    pub(crate) readonly: bool,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) secret: Option<SecretName>,
}

impl Publish {
    /// What takes it back.
    pub(crate) fn undone(&self) -> Unpublish {
        let Self { volume_handle, node_id, secret, .. } = self.clone();
        Unpublish { volume_handle, node_id, secret }
    }
}

/// A volume to unpublish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unpublish {
    pub(crate) volume_handle: String,
    pub(crate) node_id: String,
    /// Known only as long as the PersistentVolume is there.
    pub(crate) secret: Option<SecretName>,
}

/// The Secret whose values the driver gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl SecretName {
    fn of(csi: &CSIPersistentVolumeSource) -> Option<Self> {
        let SecretReference { namespace, name } = csi.controller_publish_secret_ref.clone()?;
        Some(Self { namespace: namespace?, name: name? })
    }
}

/// Why it cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The PersistentVolume is not there.
    NoVolume(String),
    /// The PersistentVolume is being deleted.
    VolumeGoes(String),
    /// It names no volume, or two.
    BadSource,
    /// The volume is another driver's, or none of CSI.
    OtherDriver(String),
    /// The driver has no node ID on the node.
    NoNodeId {
        /// The node.
        node: String,
        /// The driver.
        driver: String,
    },
    /// The volume cannot be used in the way that it says.
    BadCapability(&'static str),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVolume(name) => write!(f, "there is no PersistentVolume {name}"),
            Self::VolumeGoes(name) => write!(f, "PersistentVolume {name} is being deleted"),
            Self::BadSource => f.write_str("it has to name either a PersistentVolume or an inline volume"),
            Self::OtherDriver(driver) if driver.is_empty() => f.write_str("the volume is not a CSI volume"),
            Self::OtherDriver(driver) => write!(f, "the volume belongs to driver {driver}"),
            Self::NoNodeId { node, driver } => write!(f, "driver {driver} is not registered on node {node} (CSINode)"),
            Self::BadCapability(why) => f.write_str(why),
        }
    }
}

/// What to do next about an attachment.
pub(crate) fn decide(attachment: &VolumeAttachment, facts: Facts<'_>) -> Next {
    let held = attachment.finalizers().contains(&facts.driver.finalizer);
    let attached = attachment.status.as_ref().is_some_and(|status| status.attached);
    let next = match (attachment.metadata.deletion_timestamp.is_some(), held, attached) {
        // Whoever has no finalizer of ours was never published by us, or is done with.
        (true, false, _) | (false, _, true) => Ok(Next::Rest),
        (true, true, _) => detach(attachment, facts),
        (false, held, false) => attach(attachment, held, facts),
    };
    next.unwrap_or_else(Next::Blocked)
}

fn attach(attachment: &VolumeAttachment, held: bool, facts: Facts<'_>) -> Result<Next, Obstacle> {
    let driver = facts.driver;
    let (spec, csi) = source(attachment, facts)?;
    // An inline volume has no object that could go away.
    if let (Some(name), Some(volume)) = (&attachment.spec.source.persistent_volume_name, facts.volume) {
        if volume.metadata.deletion_timestamp.is_some() {
            return Err(Obstacle::VolumeGoes(name.clone()));
        }
        if !volume.finalizers().contains(&driver.finalizer) {
            return Ok(Next::GuardVolume);
        }
    }
    let capability = capability::of(spec, driver.tells_writers).map_err(Obstacle::BadCapability)?;
    let node_id = facts.node_id.ok_or_else(|| no_node_id(attachment, facts))?;
    let intent = Intent { node_id: node_id.to_owned(), volume_handle: csi.volume_handle.clone() };
    let annotations = attachment.annotations();
    let written = (annotations.get(NODE_ID), annotations.get(VOLUME_HANDLE));
    match written {
        (Some(node), Some(handle)) if held && node == node_id && *handle == csi.volume_handle => {}
        // That may have been published: a lost answer looks like none.
        (Some(node), handle)
            if held && (node != node_id || handle.is_some_and(|handle| *handle != csi.volume_handle)) =>
        {
            let mut old = unpublish(csi, node.clone());
            old.volume_handle = handle.cloned().unwrap_or(old.volume_handle);
            return Ok(Next::Move(old, intent));
        }
        (Some(_) | None, Some(_) | None) => return Ok(Next::Record(intent)),
    }
    Ok(Next::Publish(Box::new(Publish {
        volume_handle: csi.volume_handle.clone(),
        node_id: node_id.to_owned(),
        capability,
        // "CO MUST set this field to false if SP does not have the PUBLISH_READONLY controller capability."
        readonly: driver.publishes_readonly && csi.read_only == Some(true),
        attributes: csi.volume_attributes.clone().unwrap_or_default(),
        secret: SecretName::of(csi),
    })))
}

fn detach(attachment: &VolumeAttachment, facts: Facts<'_>) -> Result<Next, Obstacle> {
    let annotations = attachment.annotations();
    // What was written down is where it was published; what a CSINode says is where it would be published now.
    let node_id = annotations.get(NODE_ID).map(String::as_str).or(facts.node_id);
    let node_id = node_id.ok_or_else(|| no_node_id(attachment, facts))?.to_owned();
    match (source(attachment, facts), annotations.get(VOLUME_HANDLE)) {
        // The volume that was published is the one that was written down, also if another has the object's name now.
        (Ok((_, csi)), None) => Ok(Next::Unpublish(unpublish(csi, node_id))),
        (Ok((_, csi)), Some(written)) if *written == csi.volume_handle => Ok(Next::Unpublish(unpublish(csi, node_id))),
        (Ok(_) | Err(_), Some(written)) => {
            Ok(Next::Unpublish(Unpublish { volume_handle: written.clone(), node_id, secret: None }))
        }
        (Err(obstacle), None) => Err(obstacle),
    }
}

fn unpublish(csi: &CSIPersistentVolumeSource, node_id: String) -> Unpublish {
    Unpublish { volume_handle: csi.volume_handle.clone(), node_id, secret: SecretName::of(csi) }
}

fn no_node_id(attachment: &VolumeAttachment, facts: Facts<'_>) -> Obstacle {
    Obstacle::NoNodeId { node: attachment.spec.node_name.clone(), driver: facts.driver.name.clone() }
}

/// The volume that an attachment means.
fn source<'a>(
    attachment: &'a VolumeAttachment,
    facts: Facts<'a>,
) -> Result<(&'a PersistentVolumeSpec, &'a CSIPersistentVolumeSource), Obstacle> {
    let source = &attachment.spec.source;
    let spec = match (&source.persistent_volume_name, &source.inline_volume_spec) {
        (Some(name), None) => {
            let volume = facts.volume.ok_or_else(|| Obstacle::NoVolume(name.clone()))?;
            volume.spec.as_ref().ok_or_else(|| Obstacle::OtherDriver(String::new()))?
        }
        (None, Some(inline)) => inline,
        (Some(_), Some(_)) | (None, None) => return Err(Obstacle::BadSource),
    };
    match &spec.csi {
        Some(csi) if csi.driver == facts.driver.name => Ok((spec, csi)),
        Some(csi) => Err(Obstacle::OtherDriver(csi.driver.clone())),
        None => Err(Obstacle::OtherDriver(String::new())),
    }
}

#[cfg(test)]
mod tests;
