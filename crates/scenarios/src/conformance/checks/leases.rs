//! Leases: what elects a leader, and what says that a node lives.

use serde_json::json;

use crate::conformance::answer::{must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{lease, named};
use crate::conformance::places::{LEASES, at};
use crate::conformance::{Told, table};

table! { "leases";
    one_is_first: "of two that make the Lease, one is refused: AlreadyExists";
    taken_over_meanwhile: "who renews what another has taken over is refused, and the other's name stays";
    microseconds_are_kept: "times are kept to the microsecond";
    whole_seconds: "and are written with six digits, or are refused";
    replace_without_version: "a replace needs a version";
    replace_of_a_deleted_one: "a replace of a Lease that was deleted meanwhile does not bring it back";
    replace_of_none: "a replace of one that never was makes it, if it names no UID";
    duration_of_nothing: "a duration of nothing is refused, with its field";
    transitions_below_zero: "so is a negative count of transitions";
    held_by_nobody: "a Lease may have no spec";
}

async fn one_is_first(bench: &Bench) -> Told {
    let first = bench.make(LEASES, lease(&bench.name("l"), "a")).await?;
    let refusal = bench.post(LEASES, &lease(first.name(), "b")).await?.refused(409, "AlreadyExists")?;
    refusal.says(&format!("leases.coordination.k8s.io \"{}\" already exists", first.name()))
}

async fn taken_over_meanwhile(bench: &Bench) -> Told {
    let ours = bench.make(LEASES, lease(&bench.name("l"), "a")).await?;
    bench.merge(&ours.path, &json!({"spec": {"holderIdentity": "b", "leaseTransitions": 1}})).await?.is(200)?;
    let mut renewed = ours.object.clone();
    renewed["spec"]["renewTime"] = "2026-03-01T12:00:05.000001Z".into();
    let refusal = bench.put(&ours.path, &renewed).await?.refused(409, "Conflict")?;
    refusal.mentions("Operation cannot be fulfilled on leases.coordination.k8s.io")?;
    same("holder", text(&bench.read(&ours.path).await?, "/spec/holderIdentity"), "b")
}

async fn microseconds_are_kept(bench: &Bench) -> Told {
    let mut precise = lease(&bench.name("l"), "a");
    precise["spec"]["renewTime"] = "2026-03-01T12:00:00.123456Z".into();
    let lease = bench.make(LEASES, precise).await?;
    same("renewTime", text(&lease.object, "/spec/renewTime"), "2026-03-01T12:00:00.123456Z")
}

async fn whole_seconds(bench: &Bench) -> Told {
    let mut whole = lease(&bench.name("l"), "a");
    whole["spec"]["renewTime"] = "2026-03-01T12:00:00Z".into();
    let refusal = bench.post(LEASES, &whole).await?.refused(400, "BadRequest")?;
    refusal.says(
        "Lease in version \"v1\" cannot be handled as a Lease: parsing time \"2026-03-01T12:00:00Z\" as \
         \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"",
    )
}

async fn replace_without_version(bench: &Bench) -> Told {
    let made = bench.make(LEASES, lease(&bench.name("l"), "a")).await?;
    let refusal = bench.put(&made.path, &lease(made.name(), "b")).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.resourceVersion", "must be specified for an update")
}

async fn replace_of_a_deleted_one(bench: &Bench) -> Told {
    let lease = bench.make(LEASES, lease(&bench.name("l"), "a")).await?;
    bench.delete(&lease.path, &json!({})).await?.is(200)?;
    let answer = bench.put(&lease.path, &lease.object).await?;
    must((400..500).contains(&answer.code), || format!("got {} {}", answer.code, answer.body))?;
    same("reason", text(&answer.body, "/reason"), "Conflict")?;
    bench.gone(&lease.path).await
}

async fn replace_of_none(bench: &Bench) -> Told {
    let name = bench.name("l");
    let mut stale = lease(&name, "a");
    stale["metadata"]["resourceVersion"] = "7".into();
    let made = bench.put(&at(LEASES, &name), &stale).await?.is(201)?;
    bench.remember(LEASES, made);
    bench.read(&at(LEASES, &name)).await.map(drop)
}

async fn duration_of_nothing(bench: &Bench) -> Told {
    let mut short = lease(&bench.name("l"), "a");
    short["spec"]["leaseDurationSeconds"] = 0.into();
    let refusal = bench.post(LEASES, &short).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec.leaseDurationSeconds", "must be greater than 0")
}

async fn transitions_below_zero(bench: &Bench) -> Told {
    let mut odd = lease(&bench.name("l"), "a");
    odd["spec"]["leaseTransitions"] = json!(-1);
    let refusal = bench.post(LEASES, &odd).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec.leaseTransitions", "must be greater than or equal to 0")
}

async fn held_by_nobody(bench: &Bench) -> Told {
    let lease = bench.make(LEASES, named(&bench.name("l"))).await?;
    let read = bench.read(&at(LEASES, lease.name())).await?;
    same("holder", text(&read, "/spec/holderIdentity"), "")
}
