//! Demo / scenario: which story of the catalogue is shown, and how it has to end.
//!
//! A scenario has no script of its own: what happens and what is expected is the text that the tests tell
//! (`palisade-scenarios`). Five of them have a short name; every other story can be watched by its own.

use std::str::FromStr;

use anyhow::bail;
use palisade_scenarios::catalogue::{NAMES, Story};

use super::stage::Stage;

/// A story and what a person who watches it is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scenario {
    short: &'static str,
    story: &'static str,
    ends: Ending,
}

/// How a scenario has to end, beside what its story expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The pod runs elsewhere, and the node is back clean.
    Moves,
    /// Nothing is released, and a reason is named.
    Holds,
    /// Nothing is even begun, and a reason is named.
    Untouched,
    /// The pod runs, here or elsewhere, and the node is back clean.
    Settles,
    /// As the story says.
    AsTold,
}

/// Those that everybody should see once.
pub(super) const FEATURED: [Scenario; 5] = [
    Scenario { short: "power-failure", story: "power_failure", ends: Ending::Moves },
    Scenario { short: "partition", story: "partition_from_peers_too", ends: Ending::Moves },
    Scenario { short: "lying-bmc", story: "bmc_only_says_yes", ends: Ending::Holds },
    Scenario { short: "storm", story: "half_of_the_nodes_gone", ends: Ending::Untouched },
    Scenario { short: "node-returns", story: "node_returns_during_the_fence", ends: Ending::Settles },
];

impl Scenario {
    /// As on the command line.
    pub(super) fn name(self) -> String {
        self.short.replace('_', "-")
    }

    /// The story.
    pub(super) fn story(self) -> Option<Story<Stage>> {
        Story::named(self.story)
    }

    /// How it has to end.
    pub(super) fn ends(self) -> Ending {
        self.ends
    }

    /// The others.
    pub(super) fn rest() -> impl Iterator<Item = Self> {
        let featured = |name: &&&str| FEATURED.iter().all(|scenario| scenario.story != **name);
        NAMES.iter().filter(featured).map(|name| Self { short: name, story: name, ends: Ending::AsTold })
    }
}

impl FromStr for Scenario {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some(found) = FEATURED.into_iter().chain(Self::rest()).find(|scenario| scenario.name() == text) else {
            let names = FEATURED.map(|scenario| scenario.short).join(", ");
            bail!("there is {names}, and every other name of --list");
        };
        Ok(found)
    }
}

/// One sentence about a story.
pub(super) fn sentence<W>(story: &Story<W>) -> String {
    let mut letters = story.about.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_a_story_of_the_catalogue() {
        let all: Vec<Scenario> = FEATURED.into_iter().chain(Scenario::rest()).collect();
        assert_eq!(all.len(), NAMES.len(), "each story once");
        for scenario in all {
            assert_eq!(scenario.name().parse::<Scenario>().unwrap(), scenario);
            assert_eq!(scenario.story().unwrap().name, scenario.story);
        }
        assert!("earthquake".parse::<Scenario>().is_err());
    }
}
