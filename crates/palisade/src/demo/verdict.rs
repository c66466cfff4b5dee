//! Demo / verdict: whether it went as promised. Pure; the sentence is the last thing that a person reads.

use std::time::Duration;

use palisade_scenarios::world::Told;

use super::scenario::Ending;
use super::tell::seconds;

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// What the story is about.
    pub(super) about: String,
    /// Whether everything came as the story says.
    pub(super) told: Told,
    /// The node that failed.
    pub(super) home: String,
    /// The pod.
    pub(super) pod: String,
    /// Where the pod is ready; nothing if it is not.
    pub(super) runs_on: Option<String>,
    /// How long the failover took, if there was one.
    pub(super) failover: Option<Duration>,
    /// What is left on the node that failed; nothing means that it is back clean.
    pub(super) left: Vec<String>,
    /// The reason that was named for holding.
    pub(super) held: Option<String>,
    /// Whether any fence was begun.
    pub(super) fenced: bool,
    /// Whether anything was released.
    pub(super) released: bool,
    /// How long two nodes could write at once.
    pub(super) two_writers: Duration,
    /// Every instant in which a volume, this or another one, had two writers or a stale write.
    pub(super) bites: Vec<String>,
}

/// The sentence, as promised or not.
pub(super) fn judge(ending: Ending, it: &Outcome) -> Result<String, String> {
    if !it.two_writers.is_zero() {
        return Err(format!("two nodes could write to the volume for {}", seconds(it.two_writers)));
    }
    if let Some(bite) = it.bites.first() {
        return Err(format!("a promise was broken at {bite}"));
    }
    if let Err(why) = &it.told {
        return Err(why.to_string());
    }
    match ending {
        Ending::Holds | Ending::Untouched => held(ending, it),
        Ending::Moves | Ending::Settles => returned(ending, it),
        Ending::AsTold => Ok(format!("{}; it went as the story tells; never two writers", it.about)),
    }
}

/// A failure in which nothing may move.
fn held(ending: Ending, it: &Outcome) -> Result<String, String> {
    let untouched = ending == Ending::Untouched;
    match &it.held {
        _ if it.released => Err(format!("{} was released, although this failure must hold", it.pod)),
        _ if untouched && it.fenced => Err("a fence was begun, although nobody may be fenced".to_owned()),
        None => Err("nothing was released, but no reason was named either".to_owned()),
        Some(why) if untouched => Ok(format!("nobody was fenced, and nothing was released: {why}")),
        Some(why) => Ok(format!("held, and nothing was released: {why}")),
    }
}

/// A failure after which everything is well again.
fn returned(ending: Ending, it: &Outcome) -> Result<String, String> {
    let (home, pod) = (&it.home, &it.pod);
    let Some(node) = it.runs_on.as_ref() else {
        return Err(format!("{pod} does not run anywhere"));
    };
    if ending == Ending::Moves && node == home {
        return Err(format!("{pod} is still bound to {home}"));
    }
    if !it.left.is_empty() {
        return Err(format!("{pod} runs on {node}, but {home} is not back clean: {}", it.left.join(", ")));
    }
    let moved = match it.failover {
        Some(time) => format!("{pod} runs on {node}, {} after the failure", seconds(time)),
        None => format!("{pod} runs on {node}"),
    };
    Ok(format!("{moved}; {home} is back, clean; never two writers"))
}

/// What Kubernetes made of it alone. Not as promised only if it did what we say that it does not do.
pub(super) fn judge_alone(it: &Outcome, watched: Duration, nobody: Duration) -> Result<String, String> {
    let (home, pod, watched) = (&it.home, &it.pod, seconds(watched));
    match &it.runs_on {
        Some(node) if node != home => Err(format!("Kubernetes alone moved {pod} to {node} within {watched}")),
        Some(_) if it.left.is_empty() => {
            Ok(format!("{pod} came back where it was, on {home}; nobody could write for {}", seconds(nobody)))
        }
        Some(_) | None if nobody.is_zero() => {
            Ok(format!("after {watched} {pod} is still bound to {home}, which still writes, out of everybody's sight"))
        }
        Some(_) | None => Ok(format!(
            "after {watched} {pod} is still bound to {home} and down: nobody could write for {}. Kubernetes alone waits for a person",
            seconds(nobody)
        )),
    }
}

#[cfg(test)]
mod tests {
    use palisade_scenarios::world::Broken;

    use super::*;

    fn moved() -> Outcome {
        Outcome {
            about: "a machine loses its power".to_owned(),
            told: Ok(()),
            home: "n3".to_owned(),
            pod: "db-0".to_owned(),
            runs_on: Some("n4".to_owned()),
            failover: Some(Duration::from_millis(21_740)),
            left: Vec::new(),
            held: None,
            fenced: true,
            released: true,
            two_writers: Duration::ZERO,
            bites: Vec::new(),
        }
    }

    fn stuck() -> Outcome {
        Outcome { runs_on: None, failover: None, released: false, held: Some("StormBrake".to_owned()), ..moved() }
    }

    #[test]
    fn moved_and_clean_is_as_promised() {
        let said = "db-0 runs on n4, 21.7 s after the failure; n3 is back, clean; never two writers".to_owned();
        assert_eq!(judge(Ending::Moves, &moved()), Ok(said));
        let stayed = Outcome { runs_on: Some("n3".to_owned()), failover: None, released: false, ..moved() };
        assert!(judge(Ending::Settles, &stayed).is_ok(), "a node that came back in time keeps its pod");
    }

    #[test]
    fn each_way_to_fail_has_its_sentence() {
        let failures = [
            (Ending::Moves, Outcome { two_writers: Duration::from_secs(1), ..moved() }, "two nodes could write"),
            (Ending::Moves, Outcome { runs_on: None, ..moved() }, "does not run"),
            (Ending::Moves, Outcome { runs_on: Some("n3".to_owned()), ..moved() }, "still bound to n3"),
            (Ending::Moves, Outcome { left: vec!["not Ready".to_owned()], ..moved() }, "not back clean: not Ready"),
            (Ending::Holds, Outcome { released: true, ..stuck() }, "must hold"),
            (Ending::Holds, Outcome { held: None, ..stuck() }, "no reason"),
            (Ending::Untouched, Outcome { fenced: true, ..stuck() }, "a fence was begun"),
            (Ending::Untouched, Outcome { held: None, fenced: false, ..stuck() }, "no reason"),
            (Ending::AsTold, Outcome { bites: vec!["7s: two".to_owned()], ..moved() }, "broken at 7s"),
            (Ending::Moves, Outcome { told: Err(Broken("not so: one writer".to_owned())), ..moved() }, "one writer"),
        ];
        for (ending, outcome, words) in failures {
            let said = judge(ending, &outcome).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn a_hold_with_a_reason_is_as_promised() {
        assert_eq!(judge(Ending::Holds, &stuck()), Ok("held, and nothing was released: StormBrake".to_owned()));
        let untouched = Outcome { fenced: false, ..stuck() };
        let said = "nobody was fenced, and nothing was released: StormBrake".to_owned();
        assert_eq!(judge(Ending::Untouched, &untouched), Ok(said));
    }

    #[test]
    fn kubernetes_alone_is_judged_by_what_it_does() {
        let (watched, down) = (Duration::from_mins(7), Duration::from_mins(6));
        let down_there = Outcome { left: vec!["not Ready".to_owned()], ..stuck() };
        assert!(judge_alone(&down_there, watched, down).unwrap().contains("waits for a person"));
        assert!(judge_alone(&down_there, watched, Duration::ZERO).unwrap().contains("still writes"));
        assert!(judge_alone(&moved(), watched, down).is_err());
    }
}
