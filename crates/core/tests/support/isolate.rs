//! Golden cases of isolation: levels and methods (as `world` tells them), and where a Job that fences may run.

use std::collections::BTreeMap;

use palisade_core::ident::{NodeName, Uid};
use palisade_core::isolate::placement;
use palisade_core::snapshot::{FenceView, NodeView, Ready, Snapshot};

use crate::golden::{Fact, Room};
use crate::world;

pub fn rooms() -> Vec<Room> {
    let room =
        |files, run, words: &[&str]| Room { files, run, must_show: words.iter().map(|w| (*w).to_owned()).collect() };
    vec![
        room(
            "isolate/levels",
            world::run,
            &[
                "NextMethod",
                "MethodRetried",
                "NextLevel",
                "StepRetried",
                "SeenRunning",
                "IsolatedWithoutProof",
                "CallRefused",
                "CallUnknown",
                "StillOn",
                "PowerUnknown",
                "KubeletAnswers",
                "NotSteady",
                "CannotTellHibernated",
                "NoLevels",
                "ConfigUnusable",
                "ConfigChanged",
            ],
        ),
        room(
            "isolate/declared",
            world::run,
            &[
                "Isolated",
                "AwaitingSilence",
                "CalledByAnother",
                "ShowsLife",
                "NotSilent",
                "DeviceSaysOn",
                "BeliedBefore",
                "KubeletAnswers",
                "CallUnknown",
                "CallRefused",
                "IsolatedWithoutProof",
                "ReadNode",
            ],
        ),
        room("isolate/placement", place, &["never", "away-from", "possible", "impossible"]),
    ]
}

/// `node n2 rack=a down`, `fenced`, `deleting`; `keys rack,zone`; the target is `n1`.
fn place(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let mut view = Snapshot::default();
    let mut keys = Vec::new();
    for mut fact in facts.drain(..) {
        match fact.kind.as_str() {
            "node" => {
                let name = NodeName::new(fact.word("the node")?);
                if fact.flag("fenced") {
                    view.fences.insert(name.clone(), FenceView { uid: Uid::from("f2"), slot: true, held_off: false });
                }
                let node = NodeView {
                    ready: if fact.flag("not-ready") { Ready::Unknown } else { Ready::True },
                    lease_silent: fact.flag("silent"),
                    deleting: fact.flag("deleting"),
                    labels: fact.rest().into_iter().collect::<BTreeMap<_, _>>(),
                    ..NodeView::default()
                };
                view.nodes.insert(name, node);
            }
            "keys" => keys.extend(fact.word("the topology keys")?.split(',').map(str::to_owned)),
            _ => return Err(fact.wrong("nobody understands this kind of fact")),
        }
        fact.done()?;
    }
    let made = placement(&NodeName::from("n1"), &view, &keys);
    let names = |names: &[NodeName]| names.iter().map(NodeName::as_str).collect::<Vec<_>>().join(",");
    let mut lines = vec![if made.possible { "possible" } else { "impossible" }.to_owned()];
    if !made.never.is_empty() {
        lines.push(format!("never {}", names(&made.never)));
    }
    if !made.away_from.is_empty() {
        let away: Vec<String> = made.away_from.iter().map(|(key, value)| format!("{key}={value}")).collect();
        lines.push(format!("away-from {}", away.join(",")));
    }
    Ok(lines)
}
