//! Agenda: which node is due when. Thousands may wait; asking who is due costs as much as there are due.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::ident::NodeName;
use palisade_core::time::Tick;

/// One time for each node.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    at: BTreeMap<NodeName, Tick>,
    order: BTreeSet<(Tick, NodeName)>,
}

impl Agenda {
    /// Sets a node's time, in place of the one that it had.
    pub(crate) fn set(&mut self, node: &NodeName, at: Tick) {
        if self.at.get(node) == Some(&at) {
            return;
        }
        self.strike(node);
        self.at.insert(node.clone(), at);
        self.order.insert((at, node.clone()));
    }

    /// The node has no time any more.
    pub(crate) fn strike(&mut self, node: &NodeName) {
        if let Some((node, at)) = self.at.remove_entry(node) {
            self.order.remove(&(at, node));
        }
    }

    /// Who is due. They stay so until another time is set.
    pub(crate) fn due(&self, now: Tick) -> impl Iterator<Item = &NodeName> {
        self.order.iter().take_while(move |(at, _)| *at <= now).map(|(_, node)| node)
    }

    /// The first time of all.
    pub(crate) fn first(&self) -> Option<Tick> {
        self.order.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick::at_millis(seconds * 1_000)
    }

    fn due(agenda: &Agenda, seconds: u64) -> Vec<&str> {
        agenda.due(at(seconds)).map(NodeName::as_str).collect()
    }

    #[test]
    fn a_node_is_due_from_its_time_on_and_has_one_time_only() {
        let mut agenda = Agenda::default();
        let (one, two) = (NodeName::from("n1"), NodeName::from("n2"));
        agenda.set(&one, at(20));
        agenda.set(&two, at(10));
        assert_eq!((due(&agenda, 9), due(&agenda, 10), due(&agenda, 20)), (vec![], vec!["n2"], vec!["n2", "n1"]));
        agenda.set(&two, at(30));
        assert_eq!((due(&agenda, 29), agenda.first()), (vec!["n1"], Some(at(20))));
        agenda.strike(&one);
        assert_eq!((due(&agenda, 29), agenda.first()), (vec![], Some(at(30))));
    }
}
