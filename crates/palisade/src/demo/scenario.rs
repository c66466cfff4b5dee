//! Demo / scenario: what can happen to the cluster, and how it has to end.
//!
//! A scenario only touches the world: power, links, BMCs. Everything else is left to Kubernetes and to Palisade.

use std::time::Duration;

use clap::ValueEnum;
use palisade_cluster::Cluster;
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::Link;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Scenario {
    /// A node loses its power.
    PowerFailure,
    /// A node loses its network but not its disks.
    Partition,
    /// The same, and its BMC only says yes.
    LyingBmc,
    /// Half of the nodes at once.
    Storm,
    /// A node loses its power and comes back by itself in the middle of the fence.
    NodeReturns,
}

/// How a scenario has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The pod runs elsewhere, and the node is back clean.
    Moves,
    /// Nothing is released, and a reason is named.
    Holds,
    /// The pod runs, here or elsewhere, and the node is back clean.
    Settles,
}

/// When the second act of a scenario comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cue {
    /// So long after the failure.
    After(Duration),
    /// Once the pod runs elsewhere.
    Moved,
}

impl Scenario {
    /// As on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PowerFailure => "power-failure",
            Self::Partition => "partition",
            Self::LyingBmc => "lying-bmc",
            Self::Storm => "storm",
            Self::NodeReturns => "node-returns",
        }
    }

    /// One sentence.
    pub(super) fn tells(self) -> &'static str {
        match self {
            Self::PowerFailure => "A node loses its power: Palisade proves that it is off and moves its database.",
            Self::Partition => {
                "A node loses its network and goes on writing: it is switched off before anything moves."
            }
            Self::LyingBmc => "A node loses its network, and its BMC says yes and does nothing: nothing may move.",
            Self::Storm => "Half of the nodes go silent at once: perhaps we are the broken part, so nothing may move.",
            Self::NodeReturns => "A node loses its power and comes back by itself in the middle of the fence.",
        }
    }

    /// How it has to end.
    pub(super) fn ends(self) -> Ending {
        match self {
            Self::PowerFailure | Self::Partition => Ending::Moves,
            Self::LyingBmc | Self::Storm => Ending::Holds,
            Self::NodeReturns => Ending::Settles,
        }
    }

    /// What was wrong before anybody noticed.
    pub(super) fn prepare(self, cluster: &Cluster, home: &str) {
        if self == Self::LyingBmc {
            cluster.bmc(home).set(Behaviour::AcceptsOnly);
        }
    }

    /// It strikes the node on which the database runs. Says what happened.
    pub(super) fn strike(self, cluster: &Cluster, home: &str) -> String {
        match self {
            Self::PowerFailure => {
                cluster.power_off(home);
                format!("{home} loses its power; its BMC has its own and stays on")
            }
            Self::Partition => {
                cut(cluster, home);
                format!("{home} loses its network: no API server, no peers. It is alive, and its disks are there")
            }
            Self::LyingBmc => {
                cut(cluster, home);
                format!("{home} loses its network and goes on writing; its BMC will take every command and do nothing")
            }
            Self::Storm => {
                let others = cluster.truth().look(|world| world.machines.keys().map(ToString::to_string).collect());
                let struck = half(others, home);
                for node in &struck {
                    cluster.power_off(node);
                }
                format!("{} lose their power at the same instant", struck.join(" and "))
            }
            Self::NodeReturns => {
                cluster.cut_feed(home);
                format!("{home} loses its feed, and its BMC with it")
            }
        }
    }

    /// When something more happens.
    pub(super) fn cue(self) -> Option<Cue> {
        match self {
            Self::Partition => Some(Cue::Moved),
            // Inside the lease's silence, so that it boots while it is being fenced.
            Self::NodeReturns => Some(Cue::After(Duration::from_secs(8))),
            Self::PowerFailure | Self::LyingBmc | Self::Storm => None,
        }
    }

    /// What happens then.
    pub(super) fn follow(self, cluster: &Cluster, home: &str) -> String {
        if self == Self::NodeReturns {
            cluster.restore_feed(home);
            return format!("the feed of {home} is back, and the machine starts by itself");
        }
        for link in LINKS {
            cluster.heal(home, link);
        }
        format!("somebody mends the network of {home}")
    }
}

/// What a partition cuts. The storage network is another one: such a node can write on.
const LINKS: [Link; 2] = [Link::Api, Link::Peers];

fn cut(cluster: &Cluster, node: &str) {
    for link in LINKS {
        cluster.cut(node, link);
    }
}

/// Half of the nodes, the one that matters among them.
fn half(mut nodes: Vec<String>, home: &str) -> Vec<String> {
    let wanted = nodes.len() / 2;
    nodes.sort_by_key(|node| node != home);
    nodes.truncate(wanted);
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_clap_takes() {
        for scenario in Scenario::value_variants() {
            assert_eq!(Scenario::from_str(scenario.name(), false), Ok(*scenario));
        }
    }

    #[test]
    fn half_of_the_nodes_has_the_one_that_matters() {
        let nodes = ["n1", "n2", "n3", "n4"].map(str::to_owned).to_vec();
        assert_eq!(half(nodes.clone(), "n3"), ["n3", "n1"]);
        assert_eq!(half(nodes, "n1"), ["n1", "n2"]);
    }
}
