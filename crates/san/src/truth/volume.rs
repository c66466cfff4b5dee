//! Volume: what a volume is, and to whom it may be published. Pure.

use std::collections::BTreeMap;

use palisade_csi::messages::volume::Mode;
use serde::{Deserialize, Serialize};

use super::Id;

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Volume {
    /// Our name for it.
    pub(crate) id: Id,
    /// The name under which it was asked for.
    pub(crate) name: String,
    /// How large it is said to be. Nobody enforces it.
    pub(crate) bytes: i64,
    /// What it was made with.
    pub(crate) parameters: BTreeMap<String, String>,
    /// To which nodes it is published.
    pub(crate) published: BTreeMap<Id, Publication>,
}

/// How a volume is published to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Publication {
    /// Who may use it beside.
    pub(crate) mode: Access,
    /// The node may not write.
    pub(crate) readonly: bool,
}

impl Publication {
    /// Whether the node may not write, for whichever reason.
    pub(crate) fn reads_only(self) -> bool {
        self.readonly || matches!(self.mode, Access::OneReader | Access::ManyReaders)
    }
}

/// The access modes that the SAN knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Access {
    /// One node, reading and writing.
    OneWriter,
    /// One node, reading.
    OneReader,
    /// Many nodes, reading.
    ManyReaders,
    /// Many nodes, reading and writing.
    ManyWriters,
}

impl Access {
    /// The access mode that a request means; nothing if we do not offer it.
    pub(crate) fn read(mode: Mode) -> Option<Self> {
        match mode {
            Mode::SingleNodeWriter => Some(Self::OneWriter),
            Mode::SingleNodeReaderOnly => Some(Self::OneReader),
            Mode::MultiNodeReaderOnly => Some(Self::ManyReaders),
            Mode::MultiNodeMultiWriter => Some(Self::ManyWriters),
            Mode::Unknown
            | Mode::MultiNodeSingleWriter
            | Mode::SingleNodeSingleWriter
            | Mode::SingleNodeMultiWriter => None,
        }
    }

    /// Whether a volume that one node has like this may be given to another node like that.
    fn beside(self, other: Self) -> bool {
        match (self, other) {
            (Self::ManyReaders, Self::ManyReaders) | (Self::ManyWriters, Self::ManyWriters) => true,
            (Self::OneWriter | Self::OneReader | Self::ManyReaders | Self::ManyWriters, _) => false,
        }
    }
}

/// Whether a volume may be published to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may.
    Free,
    /// It is, in just this way.
    Already,
    /// It is, but in another way.
    Otherwise(Publication),
    /// It is published to another node, and the two do not go together.
    Elsewhere(Id),
}

impl Volume {
    /// Whether this volume may be published to this node in this way.
    pub(crate) fn may_publish(&self, node: &Id, wanted: Publication) -> Verdict {
        if let Some(has) = self.published.get(node) {
            return if *has == wanted { Verdict::Already } else { Verdict::Otherwise(*has) };
        }
        let other = self.published.iter().find(|(_, has)| !has.mode.beside(wanted.mode));
        other.map_or(Verdict::Free, |(node, _)| Verdict::Elsewhere(node.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::{ManyReaders, ManyWriters, OneReader, OneWriter};

    fn id(text: &str) -> Id {
        Id::read(text).unwrap()
    }

    fn on_n1(mode: Access, readonly: bool) -> Volume {
        let published = BTreeMap::from([(id("n1"), Publication { mode, readonly })]);
        Volume { id: id("v"), name: "v".to_owned(), bytes: 1, parameters: BTreeMap::new(), published }
    }

    #[test]
    fn a_volume_of_one_node_is_given_to_one_node() {
        for has in [OneWriter, OneReader, ManyReaders, ManyWriters] {
            for wants in [OneWriter, OneReader, ManyReaders, ManyWriters] {
                let verdict = on_n1(has, false).may_publish(&id("n2"), Publication { mode: wants, readonly: false });
                let together = matches!((has, wants), (ManyReaders, ManyReaders) | (ManyWriters, ManyWriters));
                let expected = if together { Verdict::Free } else { Verdict::Elsewhere(id("n1")) };
                assert_eq!(verdict, expected, "{has:?} then {wants:?}");
            }
        }
    }

    #[test]
    fn reading_only_makes_no_room_for_another() {
        let verdict = on_n1(OneWriter, true).may_publish(&id("n2"), Publication { mode: OneWriter, readonly: true });
        assert_eq!(verdict, Verdict::Elsewhere(id("n1")));
    }

    #[test]
    fn the_same_again_is_nothing_new_and_another_way_is_refused() {
        let has = Publication { mode: OneWriter, readonly: false };
        let volume = on_n1(OneWriter, false);
        assert_eq!(volume.may_publish(&id("n1"), has), Verdict::Already);
        let reading = Publication { readonly: true, ..has };
        assert_eq!(volume.may_publish(&id("n1"), reading), Verdict::Otherwise(has));
        assert!(reading.reads_only() && !has.reads_only());
        assert!(Publication { mode: ManyReaders, readonly: false }.reads_only());
    }
}
