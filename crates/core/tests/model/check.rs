//! Model / check: explores a world to exhaustion, prints what was found, and tells a counterexample as a story.

use std::sync::atomic::Ordering;

use palisade_core::fence::{Fence, IsolationKind, Phase, ReleaseState};
use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};

use crate::events::Explored;
use crate::setup::{Setup, Until};
use crate::shell::decide;
use crate::world::{Broken, Event, Home, Kind, World};

impl Model for Explored {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![self.beginning()]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        self.events(world, events);
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        self.after(world, event)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I1 single writer", |_, world: &World| world.broken != Some(Broken::I1)),
            Property::always("I2 proof before release", |_, world: &World| world.broken != Some(Broken::I2)),
            Property::always("I4 exact target", |_, world: &World| world.broken != Some(Broken::I4)),
            Property::always("I5 intent before effect", |_, world: &World| world.broken != Some(Broken::I5)),
            Property::always("I6 unknown is not success", |_, world: &World| world.broken != Some(Broken::I6)),
            Property::sometimes("a pod is released", |model: &Self, world| {
                model.on_record(world, |fence| {
                    fence.releases.iter().any(|release| release.state >= ReleaseState::Removed)
                })
            }),
            Property::sometimes("its replacement writes", |_, world: &World| world.elsewhere != 0),
            Property::sometimes("a proof is voided", |model: &Self, world| {
                model.on_record(world, |fence| fence.proofs.iter().any(|proof| proof.ended().is_some()))
            }),
            Property::sometimes("the node is out of service", |_, world: &World| {
                world.api.node.is_some_and(|node| node.out_of_service)
            }),
            Property::sometimes("its Node is deleted by us", |model: &Self, world: &World| {
                let intended = |fence: &Fence| fence.isolated_by(IsolationKind::NodeDeletion);
                world.api.node.is_none() && model.on_record(world, intended)
            }),
            Property::sometimes("the node is back and clean", |model: &Self, world: &World| {
                let free = world.api.node.is_some_and(|node| node.taint.is_none() && node.ready);
                free && model
                    .on_record(world, |fence| matches!(fence.phase, Phase::Final(_)) && !fence.releases.is_empty())
            }),
        ]
    }

    fn within_boundary(&self, world: &World) -> bool {
        let attempts = u32::from(self.setup.bounds.attempts);
        let followed = |fence: &Fence| match self.setup.until {
            Until::On => {
                matches!(fence.phase, Phase::New | Phase::Isolating(_) | Phase::Isolated { .. } | Phase::PoweringOn(_))
            }
            Until::Closed => true,
        };
        self.on_record(world, |fence| {
            fence.attempt < 2 * attempts && fence.calls <= 3 * attempts + 3 && followed(fence)
        }) || world.api.fence.is_none()
    }
}

impl Explored {
    fn on_record(&self, world: &World, holds: impl Fn(&Fence) -> bool) -> bool {
        world.api.fence.is_some_and(|fence| holds(&self.tables.fence(fence)))
    }

    /// The world in a line.
    fn told(&self, world: &World) -> String {
        let record = world.api.fence.map_or("no fence".to_owned(), |fence| {
            let fence = self.tables.fence(fence);
            let proofs: Vec<_> = fence
                .proofs
                .iter()
                .map(|proof| {
                    format!("{}:{}{}", proof.id(), proof.class(), if proof.ended().is_some() { " ended" } else { "" })
                })
                .collect();
            let releases: Vec<_> =
                fence.releases.iter().map(|release| format!("{} {:?}", release.pod.uid, release.state)).collect();
            format!("{} attempt {} proofs {proofs:?} releases {releases:?}", fence.phase.name(), fence.attempt)
        });
        let pods: Vec<_> = (0..)
            .zip(&world.api.pods)
            .filter_map(|(name, pod)| {
                let pod = (*pod)?;
                let place = if pod.home == Home::Target { "n1" } else { "n2" };
                Some(format!("p{name}.{}@{place}{}", pod.generation, if pod.marked { " marked" } else { "" }))
            })
            .collect();
        let machine = world.machine;
        format!(
            "{record} | pods {pods:?} va {:?} | n1 {:?} boot {} runs {:b}{}{} | node {} | n2 runs {:b}",
            world.api.attachment,
            machine.power,
            machine.boot,
            machine.running,
            if machine.refused { " refused" } else { "" },
            world.other.map_or(String::new(), |other| format!(" (other machine runs {:b})", other.running)),
            world.api.node.map_or("gone".to_owned(), |node| format!(
                "n{} b{} {}",
                node.uid,
                node.boot,
                if node.ready { "ready" } else { "silent" }
            )),
            world.elsewhere,
        )
    }
}

/// What an exploration came to.
#[derive(Debug)]
pub(crate) struct Found {
    /// The promise that was broken, if one was.
    pub(crate) broken: Option<&'static str>,
    /// How it came to that.
    pub(crate) story: Vec<String>,
    /// Things that have to happen somewhere, and did not.
    pub(crate) never: Vec<&'static str>,
    /// Kinds of effects that some operator crashed right after.
    pub(crate) crashed_after: Vec<Kind>,
}

/// Explores a world and prints what it came to.
pub(crate) fn explore(setup: &Setup) -> Found {
    let label = setup.mutation.map_or(setup.name.to_owned(), |mutation| format!("{} with {mutation:?}", setup.name));
    let model = Explored::new(setup.clone());
    let crashed = model.crashed_after.clone();
    let mut found = check(model, &label, &format!("{:?}", setup.bounds), story);
    let crashed = crashed.load(Ordering::Relaxed);
    found.crashed_after = Kind::ALL.into_iter().filter(|kind| crashed & (1 << *kind as u32) != 0).collect();
    found
}

/// Explores any model breadth first on one thread, so that numbers and stories are the same each time.
#[expect(clippy::disallowed_methods, reason = "the seconds are for people")]
pub(crate) fn check<M>(
    model: M,
    label: &str,
    bounds: &str,
    story: impl Fn(&M, Vec<(M::State, Option<M::Action>)>) -> Vec<String>,
) -> Found
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static,
    M::Action: Clone + PartialEq + std::fmt::Debug + Send + Sync,
{
    let began = std::time::Instant::now();
    let checker = model.checker().threads(1).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!(
        "{label}: {} unique states, {} states, depth {}, {:.1} s; {bounds}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        began.elapsed().as_secs_f32(),
    );
    let mut found = Found { broken: None, story: Vec::new(), never: Vec::new(), crashed_after: Vec::new() };
    let discoveries = checker.discoveries();
    for property in checker.model().properties() {
        let path = discoveries.get(property.name);
        match (property.expectation, path) {
            (Expectation::Sometimes, None) => found.never.push(property.name),
            (Expectation::Always, Some(path)) => {
                found.broken = Some(property.name);
                found.story = story(checker.model(), path.clone().into_vec());
            }
            (Expectation::Sometimes, Some(_)) | (Expectation::Always, None) | (Expectation::Eventually, _) => {}
        }
    }
    found
}

/// A counterexample, step by step; the world is told whenever it has changed.
fn story(model: &Explored, path: Vec<(World, Option<Event>)>) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut before, mut count) = (String::new(), 0);
    for (world, event) in path {
        let now = model.told(&world);
        if now != before {
            lines.push(format!("         {now}"));
            before = now;
        }
        let Some(event) = event else { continue };
        count += 1;
        lines.push(format!("  {count:>3}. {event:?}{}", model.detail(&world, event)));
    }
    lines
}

impl Explored {
    /// What an operator decides or sends.
    fn detail(&self, world: &World, event: Event) -> String {
        match event {
            Event::Decide { at, overdue } => {
                let decided = decide(&self.setup, &self.tables, world, &world.operators[at], overdue);
                decided.map_or(String::new(), |decided| {
                    let mut does: Vec<String> = decided.requests.iter().map(|request| format!("{request:?}")).collect();
                    does.extend(decided.record.map(|_| "record".to_owned()));
                    does.extend(decided.reading.map(|reading| format!("read back #{}", reading.id)));
                    does.extend(decided.call.map(|call| format!("{:?}", call.kind())));
                    does.extend(decided.read_node.map(|_| "read the Node".to_owned()));
                    does.extend(decided.list_pods.then(|| "list pods".to_owned()));
                    format!(": {}", does.join(", "))
                })
            }
            Event::Send(at) | Event::SendReplyLost(at) => format!(": {:?}", world.operators[at].queue[0]),
            _ => String::new(),
        }
    }
}
