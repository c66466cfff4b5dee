//! Executor / job / check: a fence agent asks a device how it stands, long before anybody needs it.
//!
//! Promise: a check reads. Its order is to look, and there is no way to give it another one.
//! Promise (I6): only a report that was read says anything of a device. Whatever kept the Job from starting, or its pod from saying
//! something, is no fault of the device; a pod that ended with something else than a report is not good all the same.

use palisade_core::ident::Uid;
use palisade_core::preflight::{Answer, Power, Whose};
use palisade_core::resolve::call::{Device as Target, Mechanism};
use palisade_core::settings::SEND_WINDOW;
use palisade_core::snapshot::WitnessWord;
use palisade_core::time::Span;
use palisade_devices::act::{Report, Shown, Task, Verdict};

use super::owner::CHECK;
use super::{Executor, Left, Owner, order};

/// Off once is off enough: nothing is proven by it.
const ONCE: Task = Task::Look { steady_ms: Span::ZERO.as_millis() };

impl Executor {
    /// Has a Job ask the device, and takes it away again. `template`: the UID of the device's template. `stop`: nobody needs to know
    /// any more.
    pub(crate) async fn survey_by_job(
        &self,
        target: &Target,
        template: &Uid,
        stop: impl Future<Output = ()> + Unpin,
    ) -> Answer {
        let Mechanism::Agent(agent) = &target.mechanism else {
            return Answer::NotAsked(format!("{} is no fence agent's", target.template));
        };
        let owner = Owner::Check { template: &target.template, uid: template };
        let mut job = match self.of_order(&order(agent, ONCE, target), target, owner) {
            Ok(job) => job,
            Err(why) => return Answer::NotAsked(why),
        };
        job.metadata.name = Some(CHECK.to_owned());
        let send_before = self.context.clock.tick() + SEND_WINDOW;
        let ended = self.run(owner, job, target, send_before, stop).await;
        if let (Ok(_), Some(made)) = (&ended.left, &ended.made) {
            self.end(owner, made).await;
        }
        let power = match ended.left.map(|left| heard(&left)) {
            Ok(Ok(power)) => power,
            Ok(Err(answer)) => return answer,
            Err(why) => return Answer::NotAsked(why),
        };
        let kubelet = match power {
            Power::Off => self.context.probe.kubelet(&self.node, self.kubelet).await,
            Power::On | Power::Unclear(_) => WitnessWord::Unknown,
        };
        // No agent can tell whose machine it switches.
        Answer::Said { whose: Whose::Unknown, power, kubelet }
    }
}

/// What the device said; or what it means that it said nothing.
fn heard(left: &Left) -> Result<Power, Answer> {
    let report = match Report::read(&left.message) {
        Ok(report) => report,
        Err(_) if left.cut_short => return Err(told_to_go()),
        Err(why) => return Ok(Power::Unclear(format!("its pod ended with exit code {}; {why}", left.exit))),
    };
    match report.verdict {
        Verdict::Taken if left.exit == 0 => Ok(shown(&report)),
        Verdict::Taken => Ok(Power::Unclear(format!("the report says taken, and the exit code {}", left.exit))),
        Verdict::Refused => Err(Answer::Refused(report.said)),
        Verdict::Unknown if left.cut_short => Err(told_to_go()),
        Verdict::Unknown => Err(Answer::Silent(report.said)),
    }
}

fn told_to_go() -> Answer {
    Answer::NotAsked("its pod was told to go before it was done".to_owned())
}

fn shown(report: &Report) -> Power {
    match report.looks.last().map(|look| look.state) {
        Some(Shown::On) => Power::On,
        Some(Shown::Off) => Power::Off,
        Some(Shown::Unknown) | None => Power::Unclear(report.said.clone()),
    }
}

#[cfg(test)]
mod tests {
    use palisade_devices::act::Look;

    use super::*;

    fn left(exit: i32, verdict: Verdict, state: Option<Shown>) -> Left {
        let looks = state.into_iter().map(|state| Look { began_ms: 100, ended_ms: 250, state }).collect();
        Left { exit, message: Report { looks, ..Report::new(verdict, "words") }.text(), cut_short: false }
    }

    #[test]
    fn only_a_report_of_a_look_says_how_a_device_stands() {
        let words = || "words".to_owned();
        for (left, means) in [
            (left(0, Verdict::Taken, Some(Shown::On)), Ok(Power::On)),
            (left(0, Verdict::Taken, Some(Shown::Off)), Ok(Power::Off)),
            (left(0, Verdict::Taken, None), Ok(Power::Unclear(words()))),
            (left(1, Verdict::Unknown, Some(Shown::Unknown)), Err(Answer::Silent(words()))),
            (left(1, Verdict::Refused, None), Err(Answer::Refused(words()))),
        ] {
            assert_eq!(heard(&left), means, "{}", left.message);
        }
        for bad in [
            left(1, Verdict::Taken, Some(Shown::On)),
            Left { exit: 137, message: String::new(), cut_short: false },
            Left { exit: 0, message: "Success: Powered OFF".to_owned(), cut_short: false },
        ] {
            assert!(matches!(heard(&bad), Ok(Power::Unclear(_))), "{}", bad.message);
        }
    }

    #[test]
    fn a_pod_that_somebody_told_to_go_accuses_no_device() {
        let killed = Left { exit: 137, message: String::new(), cut_short: true };
        let ended = Left { cut_short: true, ..left(1, Verdict::Unknown, None) };
        for left in [killed, ended] {
            assert!(matches!(heard(&left), Err(Answer::NotAsked(_))), "{}", left.message);
        }
        let done = Left { cut_short: true, ..left(0, Verdict::Taken, Some(Shown::On)) };
        assert_eq!(heard(&done), Ok(Power::On), "it had said all that it had to");
    }
}
