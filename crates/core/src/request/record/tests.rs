//! Every life of a request survives the write and the read; what this version does not know is named.

use super::*;

const FENCE: &str = "fence-1";

/// Every reason, with the life that it goes with.
fn lives() -> Vec<(Life, RequestReason)> {
    let (fence, node) = (|| Uid::from(FENCE), || NodeName::from("n1"));
    let attached = || Life::Attached { fence: fence() };
    let closed = || Life::Ended(End::Closed { fence: None });
    let completed = || Life::Ended(End::Completed { fence: fence() });
    let failed = || Life::Ended(End::Failed { fence: fence() });
    let (gate, numbers) = (|| Box::from("storm"), || Box::from("domain=rack=a down=5 allowed=4"));
    let verdict = || RequestReason::DryRunVerdict { verdict: "Admit".into() };
    let ended = |result| RequestReason::FenceEnded { fence: fence(), result };
    vec![
        (Life::Pending, RequestReason::FenceAsked { node: node() }),
        (Life::Pending, RequestReason::Attaching { fence: fence() }),
        (attached(), RequestReason::Attached { fence: fence() }),
        (Life::Pending, RequestReason::HeldByGate { gate: gate(), why: "StormBrake".into(), numbers: numbers() }),
        (
            Life::Ended(End::Rejected),
            RequestReason::RejectedByGate { gate: gate(), why: "UnknownNode".into(), numbers: numbers() },
        ),
        (Life::Pending, verdict()),
        (closed(), verdict()),
        (Life::Pending, RequestReason::EvidenceInDoubt { seen: "ObserverBlind".into() }),
        (Life::Pending, RequestReason::NodeNotRead { node: node() }),
        (Life::Pending, RequestReason::FenceNotRead { node: node() }),
        (Life::Pending, RequestReason::FenceEnding { fence: fence() }),
        (Life::Pending, RequestReason::FenceDoesLess { fence: fence() }),
        (Life::Pending, RequestReason::FenceOfPredecessor { fence: fence(), of: Uid::from("u0") }),
        (attached(), RequestReason::FenceUnseen { fence: fence() }),
        (closed(), RequestReason::Recovered),
        (Life::Ended(End::Closed { fence: Some(fence()) }), RequestReason::Recovered),
        (closed(), RequestReason::Withdrawn),
        (closed(), RequestReason::NodeGone { node: node() }),
        (closed(), RequestReason::NodeReplaced { node: node(), asked: Uid::from("u1"), found: Uid::from("u2") }),
        (completed(), ended(FenceResult::Returned)),
        (completed(), ended(FenceResult::HeldOff)),
        (completed(), ended(FenceResult::NodeDeleted)),
        (completed(), ended(FenceResult::Stopped)),
        (failed(), RequestReason::FenceFailed { fence: fence(), cause: "StillOn".into() }),
        (failed(), RequestReason::FenceLost { fence: fence() }),
    ]
}

fn identity() -> Identity {
    Identity { uid: Uid::from("r1"), resource_version: ResourceVersion::from("7"), node: NodeName::from("n1") }
}

fn detected() -> api::NodeFencingRequestSpec {
    let trigger = api::Trigger { remedy: "bare-metal".to_owned(), threshold: "lease".to_owned() };
    api::NodeFencingRequestSpec { trigger: Some(trigger), ..Default::default() }
}

fn request(life: Life, why: RequestReason) -> Request {
    let ended = matches!(life, Life::Ended(_));
    Request {
        uid: Uid::from("r1"),
        resource_version: ResourceVersion::from("7"),
        node: NodeName::from("n1"),
        node_uid: Some(Uid::from("u1")),
        origin: Origin::Detector { rule: "bare-metal/lease".into() },
        wants: Operation::Fence,
        life,
        why: Some(why),
        waited: Watched::resumed(Span::millis(10_250)),
        ended_for: Watched::resumed(if ended { Span::mins(60) } else { Span::ZERO }),
    }
}

/// The status that a step would ask for.
fn said(request: &Request, why: &RequestReason) -> RequestStatus {
    RequestStatus {
        uid: request.uid.clone(),
        resource_version: request.resource_version.clone(),
        phase: request.life.phase(),
        why: why.clone(),
        node_uid: request.node_uid.clone(),
        fence: request.life.fence().cloned(),
        look_again: Some(Span::secs(30)),
        waited: request.waited.total(),
        ended_for: request.ended_for.total(),
    }
}

fn written(life: Life, why: &RequestReason) -> api::NodeFencingRequestStatus {
    let mut status = api::NodeFencingRequestStatus::default();
    write(&said(&request(life, why.clone()), why), &mut status);
    status
}

#[test]
fn every_life_is_read_back_as_it_was_written() {
    for (life, why) in lives() {
        let status = written(life.clone(), &why);
        assert_eq!(read(identity(), &detected(), &status), Ok(request(life, why)), "{status:?}");
    }
}

#[test]
fn every_reason_has_a_life_in_the_table() {
    let shown: Vec<&str> = lives().iter().map(|(_, why)| why.name()).collect();
    let missing: Vec<_> = RequestReason::NAMES.iter().filter(|name| !shown.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What the schema demands of every status: a result when and only when it is over, a reason always.
#[test]
fn a_request_says_how_it_ended_when_it_is_over_and_not_before() {
    for (life, why) in lives() {
        let status = written(life.clone(), &why);
        let rejected = life == Life::Ended(End::Rejected);
        let over = matches!(life, Life::Ended(_)) && !rejected;
        assert_eq!(status.phase == api::Phase::Completed, over, "{why:?}");
        assert_eq!(status.result.is_some(), over, "{why:?}");
        assert!(status.reason.is_some_and(|word| word.starts_with(char::is_uppercase)), "{why:?}");
    }
}

#[test]
fn a_later_answer_leaves_nothing_of_the_earlier_one() {
    let held = RequestReason::HeldByGate { gate: "grace".into(), why: "InGrace".into(), numbers: "".into() };
    let mut status = written(Life::Pending, &held);
    assert_eq!(status.facts.get("gate").map(String::as_str), Some("grace"));
    let attached = RequestReason::Attached { fence: Uid::from(FENCE) };
    let life = Life::Attached { fence: Uid::from(FENCE) };
    write(&said(&request(life.clone(), attached.clone()), &attached), &mut status);
    assert_eq!(status, written(life, &attached));
}

#[test]
fn a_request_that_nobody_looked_at_is_new() {
    let spec = api::NodeFencingRequestSpec { node_uid: Some("u1".to_owned()), ..Default::default() };
    let fresh = read(identity(), &spec, &api::NodeFencingRequestStatus::default());
    let wanted = Request {
        origin: Origin::Asker,
        life: Life::Pending,
        why: None,
        waited: Watched::default(),
        ..request(Life::Pending, RequestReason::Recovered)
    };
    assert_eq!(fresh, Ok(wanted));
}

#[test]
fn what_cannot_be_read_is_named_and_never_guessed() {
    type Spoil = fn(&mut api::NodeFencingRequestStatus);
    let lost = RequestReason::FenceLost { fence: Uid::from(FENCE) };
    let good = written(Life::Ended(End::Failed { fence: Uid::from(FENCE) }), &lost);
    let cases: [(&str, Spoil); 10] = [
        ("reason", |status| status.reason = Some("Vanished".to_owned())),
        ("reason", |status| status.reason = None),
        ("reason", |status| status.reason = Some("NodeNotRead".to_owned())),
        ("result", |status| status.result = Some(api::RequestResult::Recovered)),
        ("result", |status| status.result = None),
        ("fenceUID", |status| status.fence_uid = None),
        ("facts", |status| status.facts.clear()),
        ("waitedMillis", |status| status.waited_millis = -1),
        ("endedForMillis", |status| status.ended_for_millis = -1),
        ("nodeUID", |status| status.node_uid = Some("u9".to_owned())),
    ];
    let spec = api::NodeFencingRequestSpec { node_uid: Some("u1".to_owned()), ..Default::default() };
    for (field, spoil) in cases {
        let mut status = good.clone();
        spoil(&mut status);
        // The reason of another phase brings its own facts.
        status.facts.entry("node".to_owned()).or_insert_with(|| "n1".to_owned());
        let found = read(identity(), &spec, &status);
        assert_eq!(found.as_ref().map_err(|wrong| wrong.field), Err(field), "{found:?}");
        assert!(found.is_err_and(|wrong| wrong.to_string().contains("the request is left alone")));
    }
}

#[test]
fn a_fence_that_ended_in_an_unknown_way_is_not_taken_for_one_that_ended_well() {
    let why = RequestReason::FenceEnded { fence: Uid::from(FENCE), result: FenceResult::Returned };
    let mut status = written(Life::Ended(End::Completed { fence: Uid::from(FENCE) }), &why);
    status.facts.insert("result".to_owned(), "Vaporised".to_owned());
    let found = read(identity(), &detected(), &status);
    assert_eq!(found.map_err(|wrong| wrong.field), Err("facts.result"));
}

#[test]
fn a_cause_that_is_too_long_for_the_schema_is_cut_and_not_refused() {
    let why = RequestReason::FenceFailed { fence: Uid::from(FENCE), cause: "é".repeat(5_000).into() };
    let status = written(Life::Ended(End::Failed { fence: Uid::from(FENCE) }), &why);
    assert_eq!(status.message.chars().count(), LONGEST);
    assert!(status.facts.values().all(|fact| fact.chars().count() <= LONGEST));
}
