//! Node lifecycle / zones: how fast nodes may be evicted, by how much of their zone is gone.
//!
//! Promise: a zone that is wholly dark is evicted at the normal rate, since it may really be gone; when *every* zone is
//! dark nobody is evicted, since then it is the observer who is cut off.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use serde_json::Value;

use crate::{
    api::{Key, Kind, metadata},
    nature::Ctx,
    objects::labels,
    truth::Name,
};

/// `--node-eviction-rate` 0.1 per second, as the time between two nodes.
const PACE: Duration = Duration::from_secs(10);
/// `--secondary-node-eviction-rate` 0.01 per second.
const SECONDARY_PACE: Duration = Duration::from_secs(100);
/// `--large-cluster-size-threshold`: smaller zones stop altogether when they are partly gone.
const LARGE: usize = 50;
/// `--unhealthy-zone-threshold`, in percent.
const UNHEALTHY_PERCENT: usize = 55;
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// What is the matter with a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Initial,
    Normal,
    Partial,
    Full,
}

#[derive(Debug, Default)]
struct Zone {
    ready: usize,
    not_ready: usize,
    state: State,
    /// Time between two nodes; nothing means that nobody is evicted.
    pace: Option<Duration>,
    waiting: VecDeque<Name>,
    free_at: Duration,
}

/// All zones.
#[derive(Debug, Default)]
pub(super) struct Zones {
    zones: BTreeMap<String, Zone>,
    dark: bool,
}

pub(super) fn zone_of(node: &Value) -> String {
    let label = |key: &str| labels(node).get(key).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", label("topology.kubernetes.io/region"), label("topology.kubernetes.io/zone"))
}

impl Zones {
    pub(super) fn begin_round(&mut self) {
        for zone in self.zones.values_mut() {
            (zone.ready, zone.not_ready) = (0, 0);
        }
    }

    pub(super) fn count(&mut self, node: &Value, ready: bool) {
        let zone = self.zones.entry(zone_of(node)).or_default();
        if labels(node).get(EXCLUDED).is_none() {
            *(if ready { &mut zone.ready } else { &mut zone.not_ready }) += 1;
        }
    }

    /// Judges all zones by the round that was counted; says whether the world has just come back from all dark.
    pub(super) fn judge(&mut self, now: Duration) -> bool {
        let counted = || self.zones.values().filter(|zone| zone.ready + zone.not_ready > 0);
        let dark = counted().next().is_some() && counted().all(|zone| zone.now() == State::Full);
        let was_dark = std::mem::replace(&mut self.dark, dark);
        for zone in self.zones.values_mut() {
            zone.state = zone.now();
            let size = zone.ready + zone.not_ready;
            zone.pace = match zone.state {
                _ if dark => None,
                State::Partial => (size > LARGE).then_some(SECONDARY_PACE),
                State::Initial | State::Normal | State::Full => Some(PACE),
            };
            if dark {
                zone.waiting.clear();
            }
        }
        if was_dark && !dark {
            for zone in self.zones.values_mut() {
                zone.free_at = now;
            }
        }
        was_dark && !dark
    }

    pub(super) fn all_dark(&self) -> bool {
        self.dark
    }

    pub(super) fn queue(&mut self, zone: &str, node: &str) {
        let zone = self.zones.entry(zone.to_owned()).or_default();
        if !zone.waiting.iter().any(|waiting| **waiting == *node) {
            zone.waiting.push_back(node.into());
        }
    }

    pub(super) fn unqueue(&mut self, node: &str) {
        for zone in self.zones.values_mut() {
            zone.waiting.retain(|waiting| **waiting != *node);
        }
    }

    /// Taints whoever's turn has come; says when the next one's comes.
    pub(super) fn taint(&mut self, ctx: &Ctx<'_>, taint: impl Fn(&Value, &Ctx<'_>) -> bool) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        for zone in self.zones.values_mut() {
            let Some(pace) = zone.pace else { continue };
            while zone.free_at <= ctx.now
                && let Some(name) = zone.waiting.pop_front()
            {
                let node = ctx.api.get(&Key::cluster(Kind::NODE, &name));
                if node.is_some_and(|node| metadata::name(&node) == &*name && taint(&node, ctx)) {
                    zone.free_at = ctx.now + pace;
                }
            }
            if !zone.waiting.is_empty() {
                next = Some(next.map_or(zone.free_at, |due| due.min(zone.free_at)));
            }
        }
        next
    }
}

impl Zone {
    fn now(&self) -> State {
        let size = self.ready + self.not_ready;
        if self.not_ready > 0 && self.ready == 0 {
            State::Full
        } else if self.not_ready > 2 && self.not_ready * 100 >= size * UNHEALTHY_PERCENT {
            State::Partial
        } else {
            State::Normal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(ready: usize, not_ready: usize) -> State {
        Zone { ready, not_ready, ..Zone::default() }.now()
    }

    #[test]
    fn a_zone_is_judged_as_upstream_judges_it() {
        assert_eq!(zone(3, 0), State::Normal);
        assert_eq!(zone(0, 1), State::Full);
        // Two of three are more than 55%, but two are too few to speak of a zone.
        assert_eq!(zone(1, 2), State::Normal);
        assert_eq!(zone(2, 3), State::Partial);
        assert_eq!(zone(3, 3), State::Normal);
    }
}
