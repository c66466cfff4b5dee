//! Automaton / boots: which boot of the machine may still hold what ran there when its pods were marked?
//!
//! Promise (I1): what keeps a node from its data is lifted only in a boot that began after the last mark. This file gathers
//! what `recover::lift` decides by; where nothing but power cuts the node off, nobody asks.

use super::{Next, Turn};
use crate::fence::{Fence, Phase, SinceMark};
use crate::isolate::plugs_behind;
use crate::observe::{Memory, NodeSeen};
use crate::prove::{Class, Judged, LifeSigns, judge_for};
use crate::reason::automaton::MoveReason;

/// Writes down what the Node shows of the machine's boots since the last mark.
pub(super) fn watched(turn: &Turn<'_>, memory: &Memory) -> Option<Next> {
    let fence = turn.fence;
    if !asked(fence) || matches!(fence.phase, Phase::Final(_)) {
        return None;
    }
    let NodeSeen::There(node) = &turn.seen.node else { return None };
    let next = match &fence.since_mark {
        SinceMark::Unknown => {
            node.read.filter(|read| read.id >= memory.marked_read)?;
            SinceMark::Baseline { heartbeat: node.life.heartbeat.clone(), boot: node.life.boot.clone() }
        }
        SinceMark::Baseline { heartbeat, boot } => {
            let before =
                LifeSigns { renewed: node.life.renewed.clone(), heartbeat: heartbeat.clone(), boot: boot.clone() };
            crate::prove::sign_of_life(&before, &node.life)?;
            SinceMark::FirstBoot(node.boot()?.clone())
        }
        SinceMark::FirstBoot(_) | SinceMark::Off => return None,
    };
    Some(Next::Record(Fence { since_mark: next, ..fence.clone() }, MoveReason::BootsWatched))
}

/// Whether anybody will ask: something other than power keeps the node from data of pods that were marked.
pub(super) fn asked(fence: &Fence) -> bool {
    fence.guards_data() && fence.released_any()
}

/// What the power devices showed since the last mark; none if they were not read since.
pub(super) fn power_since_mark(turn: &Turn<'_>, memory: &Memory) -> Option<Judged> {
    let (plugs, stable_off) = plugs_behind(turn.fence, &turn.seen.settings, Class::Power)?;
    let (id, reads, _) = memory.last_read.as_ref()?;
    (*id >= memory.marked_read).then(|| judge_for(Class::Power, reads, &plugs, stable_off))
}
