//! Identities: which object, and which life of it.
//!
//! A name can come back as another machine, another pod, another boot. So the things that are acted upon are
//! named by UID and boot, and the types keep one kind of identity from being taken for another.

use std::fmt;

macro_rules! identities {
    ($($(#[$meta:meta])* $Name:ident),* $(,)?) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Name(Box<str>);

        impl $Name {
            /// Takes the text as it stands in the API.
            pub fn new(text: impl Into<Box<str>>) -> Self {
                Self(text.into())
            }

            /// The text as it stands in the API.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $Name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

identities! {
    /// The name of a Node. It says where, never who: see [`Incarnation`].
    NodeName,
    /// The UID of any API object.
    Uid,
    /// The `bootID` that a kubelet reports: one boot of one machine.
    BootId,
    /// The version of an object that a decision was made from.
    ResourceVersion,
    /// A storage provider, by its name in the configuration.
    ProviderName,
    /// A CSI driver, by its name in the PersistentVolume.
    DriverName,
    /// A volume as `volumesInUse` and the attach/detach controller spell it.
    VolumeName,
    /// A method of a FenceConfig, by its name.
    MethodName,
}

/// One life of one node: this Node object, in this boot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// The node's name.
    pub node: NodeName,
    /// The UID of its Node object.
    pub uid: Uid,
    /// The boot that it was in.
    pub boot: BootId,
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.node, self.uid, self.boot)
    }
}

/// A pod, with the UID that tells it from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its UID.
    pub uid: Uid,
}

impl fmt::Display for PodRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A VolumeAttachment, with its UID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttachmentRef {
    /// Its name.
    pub name: Box<str>,
    /// Its UID.
    pub uid: Uid,
}

impl fmt::Display for AttachmentRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
