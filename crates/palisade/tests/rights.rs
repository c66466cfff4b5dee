//! What the operator asks of the API server, story by story, against the table of its rights: nothing is asked for that the
//! table does not have, and whatever the table has is asked for by somebody.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use palisade_api::names::SYSTEM_NAMESPACE;
use palisade_cluster::Shape;
use palisade_cluster::api::Wire;
use palisade_cluster::api::wire::{Call, Fate};
use palisade_operator::rights::{self, NODE_LEASES, Place};
use palisade_scenarios::catalogue::Story;
use palisade_scenarios::embedded::Embedded;

/// Stories that together come by every kind of request.
const STORIES: &[&str] = &[
    "power_failure",
    "two_admins_ask_for_the_same",
    "history_is_not_kept_for_ever",
    "fence_torn_out_with_its_slot",
    "drained_before_it_is_switched_off",
    "agent_alone",
    "config_that_makes_no_sense",
    "config_that_deletes_the_node",
    "remedy_of_its_own",
    "policy_comes_back",
];

/// What no story comes by: each is used by code that the embedded world gives no reason for.
const NOT_SEEN: &[&str] = &[
    // Where the attach/detach controller does not let go by itself; the embedded one always does, and the lab can take it away.
    "delete volumeattachments",
];

/// Notes every request.
#[derive(Default)]
struct Ear(Mutex<Vec<Call>>);

impl Wire for Ear {
    fn carry(&self, call: &Call) -> Fate {
        self.0.lock().unwrap().push(call.clone());
        Fate::default()
    }
}

/// Group, resource, verb, and the namespace where it names one.
type Asked = (String, String, String, Option<String>);

async fn asked_in(story: &str) -> BTreeSet<Asked> {
    let story = Story::<Embedded>::named(story).unwrap();
    let (nodes, zones) = (story.needs.nodes, story.needs.zones);
    let ear = Arc::new(Ear::default());
    let mut world =
        Embedded::over(&Shape { nodes, zones, ..Shape::default() }, Arc::clone(&ear) as Arc<dyn Wire>).await;
    story.tell(&mut world).await.unwrap();
    let mut asked = BTreeSet::new();
    for call in ear.0.lock().unwrap().iter().filter(|call| call.actor.name().starts_with("palisade")) {
        let Some(kind) = call.kind.and_then(|kind| world.cluster.api().definition(kind)) else { continue };
        let part = if call.subresource.is_empty() { String::new() } else { format!("/{}", call.subresource) };
        let namespace = call.key.as_ref().map(|key| key.namespace.to_string()).filter(|name| !name.is_empty());
        let verb = format!("{:?}", call.verb).to_lowercase();
        asked.insert((kind.group.to_string(), format!("{}{part}", kind.plural), verb, namespace));
    }
    asked
}

fn is_granted((group, resource, verb, namespace): &Asked) -> bool {
    rights::ALL.iter().any(|right| {
        let there = match (right.place, namespace.as_deref()) {
            (Place::Cluster, _) | (_, None) => true,
            (Place::OwnNamespace, Some(namespace)) => namespace == SYSTEM_NAMESPACE,
            (Place::NodeLeases, Some(namespace)) => namespace == NODE_LEASES,
        };
        there && right.group == group && right.resource == resource && right.verbs.contains(&verb.as_str())
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_is_granted_and_what_is_granted_is_asked() {
    let mut asked = BTreeSet::new();
    for story in STORIES {
        asked.extend(asked_in(story).await);
    }
    let refused: Vec<&Asked> = asked.iter().filter(|one| !is_granted(one)).collect();
    assert!(refused.is_empty(), "a real API server would refuse: {refused:#?}");

    let used: BTreeSet<String> = asked.iter().map(|(_, resource, verb, _)| format!("{verb} {resource}")).collect();
    let all = rights::ALL.iter().flat_map(|right| right.verbs.iter().map(|verb| format!("{verb} {}", right.resource)));
    let idle: BTreeSet<String> = all.filter(|one| !used.contains(one)).collect();
    let expected: BTreeSet<String> = NOT_SEEN.iter().map(ToString::to_string).collect();
    assert_eq!(idle, expected, "on the left: in the table, and no story uses it");
}
