//! Story / palisade: what requests and fences say.

use serde_json::Value;

use super::words::plain;
use super::{Beat, Cast, Room, Written, list, text};
use crate::demo::split::Mark;

/// Requests: what was seen, and the verdict.
pub(super) fn request(write: &Written<'_>, cast: &Cast) -> Vec<Beat> {
    let Some(new) = write.new else { return Vec::new() };
    let node = text(new, "/spec/nodeName");
    let main = node == cast.home;
    let mut beats = Vec::new();
    if write.old.is_none() {
        let seen = plain(first_clause(text(new, "/spec/message")));
        beats.push(write.beat(Room::Seen, format!("{node}: {seen}")).marks_if(main, Mark::Detected));
    }
    if write.changed("/status/phase").is_none() && write.changed("/status/reason").is_none() {
        return beats;
    }
    let (reason, message) = (text(new, "/status/reason"), text(new, "/status/message"));
    match text(new, "/status/phase") {
        "Held" => beats.push(write.answer(Room::Held, format!("{node}: {}", plain(&hold(new))))),
        "Rejected" => beats.push(write.answer(Room::Decided, format!("{node}: rejected, {reason}: {message}"))),
        "Admitted" => {
            let line = write.answer(Room::Decided, format!("{node}: admitted, every gate is open; the fence begins"));
            beats.push(line.marks_if(main, Mark::Admitted));
        }
        "Completed" => {
            let result = text(new, "/status/result");
            beats.push(write.answer(Room::Returned, format!("{node}: the request is answered: {result}")));
        }
        _ => {}
    }
    beats
}

/// The gate and its numbers; the words of the gate where it has none.
fn hold(request: &Value) -> String {
    let (gate, numbers) = (text(request, "/status/facts/gate"), text(request, "/status/facts/numbers"));
    if gate.is_empty() || numbers.is_empty() {
        return format!("{}: {}", text(request, "/status/reason"), text(request, "/status/message"));
    }
    format!("the gate {gate} is closed: {numbers}; nothing is done to the node")
}

/// Fences: what is done, proven, released and given back.
pub(super) fn fence(write: &Written<'_>, cast: &Cast) -> Vec<Beat> {
    let main = write.name == cast.home;
    let Some(new) = write.new else {
        let line = write.beat(Room::Returned, format!("{}: the fence is over, and nothing of it is left", write.name));
        return vec![line.marks_if(main, Mark::Closed)];
    };
    let mut beats = proofs(write, new, main);
    for entry in fresh(write.old, new) {
        beats.extend(entry_line(write, entry, main));
    }
    beats
}

fn proofs(write: &Written<'_>, new: &Value, main: bool) -> Vec<Beat> {
    let known = |proof: &&Value| {
        let before = write.old.map(|old| list(old, "/status/proofs")).unwrap_or_default();
        !before.iter().any(|old| old["id"] == proof["id"] && old["attempt"] == proof["attempt"])
    };
    let line = |proof: &Value| {
        let (class, evidence) = (text(proof, "/class").to_lowercase(), text(proof, "/evidence"));
        let words = format!("{}: a {class} proof by {}: {evidence}", write.name, text(proof, "/source"));
        write.beat(Room::Proven, words).marks_if(main, Mark::Proven)
    };
    list(new, "/status/proofs").iter().filter(known).map(line).collect()
}

/// The entries of the timeline that are new: those behind the last one that was there.
fn fresh<'a>(old: Option<&Value>, new: &'a Value) -> &'a [Value] {
    let entries = list(new, "/status/timeline");
    let last = old.and_then(|old| list(old, "/status/timeline").last());
    let known = last.and_then(|last| entries.iter().rposition(|entry| entry == last));
    known.map_or(entries, |known| &entries[known + 1..])
}

fn entry_line(write: &Written<'_>, entry: &Value, main: bool) -> Option<Beat> {
    let room = match text(entry, "/reason") {
        // Told by the proof, by the request, or by the line that follows in the same instant.
        "Isolated" | "SlotTaken" | "SlotGivenBack" | "DetachIntended" | "LiftIntended" | "TimeKept" => return None,
        "ReleaseIntended" | "PodMarked" | "PodGone" | "VolumesOut" | "PodDetached" | "Unpublished" => Room::Released,
        "StepRetried" | "NextLevel" | "Failed" | "SlowRetry" | "IsolatedWithoutProof" => Room::Held,
        "OnIntended" | "PoweredOn" | "BootedAnew" | "HealthyAgain" | "NodeReturned" | "Lifted" | "Recovered"
        | "RecoveredByItself" => Room::Returned,
        _ => Room::Done,
    };
    let line = write.beat(room, format!("{}: {}", write.name, plain(text(entry, "/message"))));
    Some(line.marks_if(main && text(entry, "/reason") == "PodGone", Mark::Released))
}

/// What was seen, without what follows from it.
fn first_clause(message: &str) -> &str {
    message.split(';').next().unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::{Holds, of_writes};
    use super::*;

    fn cast() -> Cast {
        Cast { home: "n3".to_owned(), pod: "db-0".to_owned(), ..Cast::default() }
    }

    fn told(writes: &[(Option<&Value>, Option<&Value>)]) -> Vec<(Room, String, Option<Mark>)> {
        let at = Duration::from_secs(7);
        let name = |object: &Value| text(object, "/metadata/name").to_owned();
        let names: Vec<String> = writes.iter().map(|(old, new)| new.or(*old).map(name).unwrap_or_default()).collect();
        let writes: Vec<Written<'_>> = writes
            .iter()
            .zip(&names)
            .map(|((old, new), name)| Written { at, by: "palisade-0", name, old: *old, new: *new })
            .collect();
        let beats = Holds::default().sift(of_writes(&writes, &cast()), at + Duration::from_secs(5));
        beats.into_iter().map(|beat| (beat.room, beat.text, beat.mark)).collect()
    }

    fn request_of(node: &str, status: &Value) -> Value {
        json!({
            "kind": "NodeFencingRequest",
            "metadata": { "name": format!("{node}-x") },
            "spec": { "nodeName": node, "message": "no renewal for 20s, seconded by kubelet-port; the gates decide" },
            "status": status,
        })
    }

    #[test]
    fn a_request_that_is_held_for_no_time_at_all_is_told_as_admitted() {
        let new = request_of("n3", &json!({}));
        let held = request_of("n3", &json!({ "phase": "Held", "reason": "WorkloadUnknown" }));
        let admitted = request_of("n3", &json!({ "phase": "Admitted", "reason": "Attached" }));
        let told = told(&[(None, Some(&new)), (Some(&new), Some(&held)), (Some(&held), Some(&admitted))]);
        let seen = (Room::Seen, "n3: no renewal for 20s, seconded by kubelet-port".to_owned(), Some(Mark::Detected));
        let decided =
            (Room::Decided, "n3: admitted, every gate is open; the fence begins".to_owned(), Some(Mark::Admitted));
        assert_eq!(told, [seen, decided]);
    }

    #[test]
    fn a_hold_names_its_gate_once() {
        let new = request_of("n1", &json!({}));
        let facts = json!({ "gate": "storm", "numbers": "StormBrake down=2 allowed=1" });
        let held = request_of("n1", &json!({ "phase": "Held", "reason": "StormBrake", "facts": facts }));
        let mut again = held.clone();
        again["status"]["waitedMillis"] = 15_000.into();
        let told = told(&[(Some(&new), Some(&held)), (Some(&held), Some(&again))]);
        let text = "n1: the gate storm is closed: StormBrake down=2 allowed=1; nothing is done to the node".to_owned();
        assert_eq!(told, [(Room::Held, text, None)]);
    }

    fn fence_with(timeline: &Value, proofs: &Value) -> Value {
        json!({
            "kind": "NodeFence", "metadata": { "name": "n3" },
            "status": { "timeline": timeline, "proofs": proofs },
        })
    }

    #[test]
    fn a_fence_tells_only_what_is_new() {
        let begins = json!({ "time": "1", "reason": "IsolationBegins", "message": "attempt 1: isolation begins" });
        let isolated = json!({ "time": "2", "reason": "Isolated", "message": "the node is isolated" });
        let gone = json!({ "time": "3", "reason": "PodGone", "message": "default/db-0 is removed" });
        let proof = json!([{ "id": "a1-0", "attempt": 1, "class": "Power", "source": "bmc", "evidence": "read off" }]);
        let first = fence_with(&json!([begins]), &json!([]));
        let second = fence_with(&json!([begins, isolated]), &proof);
        let third = fence_with(&json!([begins, isolated, gone]), &proof);
        let told = told(&[
            (None, Some(&first)),
            (Some(&first), Some(&second)),
            (Some(&second), Some(&third)),
            (Some(&third), None),
        ]);
        assert_eq!(
            told,
            [
                (Room::Done, "n3: attempt 1: isolation begins".to_owned(), None),
                (Room::Proven, "n3: a power proof by bmc: read off".to_owned(), Some(Mark::Proven)),
                (Room::Released, "n3: default/db-0 is removed".to_owned(), Some(Mark::Released)),
                (Room::Returned, "n3: the fence is over, and nothing of it is left".to_owned(), Some(Mark::Closed)),
            ]
        );
    }

    #[test]
    fn a_timeline_that_is_full_still_tells_what_is_new() {
        let entry = |number: u32| json!({ "time": number.to_string(), "reason": "MethodRetried", "message": "again" });
        let old = fence_with(&json!([entry(1), entry(2)]), &json!([]));
        let new = fence_with(&json!([entry(2), entry(3)]), &json!([]));
        assert_eq!(told(&[(Some(&old), Some(&new))]).len(), 1);
    }
}
