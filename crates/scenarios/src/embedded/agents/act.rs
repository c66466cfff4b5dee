//! Embedded / agents / act: stands for `palisade act` in the embedded world: one order, one report.
//!
//! Promise (I6): as there, an exit code of 0 with an error's words is Unknown, a failure after something may have been sent is
//! Unknown, and "already off" counts only when it is said for longer than a moment: somebody else's power cycle looks the same.

use std::time::Duration;

use palisade_cluster::clock::Clock;
use palisade_cluster::machines::program::{End, Inside};
use palisade_devices::act::{Look, Order, Report, Shown, Task, Verdict};

use super::agent::{Action, Caller, Said};
use super::panel::Panel;
use super::{Agents, end};
use crate::world::Agent;

/// Where the Secrets of an order are mounted.
const SECRETS: &str = "/etc/palisade/secrets";
/// What a container says that was killed by SIGKILL.
const KILLED: i32 = 137;
/// How often a device is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often "already off" has to be said, and how far apart.
const ALREADY: u32 = 3;
const ALREADY_EVERY: Duration = Duration::from_millis(2_500);

/// A pod at work.
pub(super) struct Acting {
    agents: Agents,
    clock: Clock,
    since: Duration,
    order: Result<(Order, Caller), String>,
    sent: Option<String>,
    said: String,
    looks: Vec<Look>,
}

/// What it comes to.
enum Outcome {
    Verdict(Verdict),
    /// The whole pod was killed, and nobody is left who could report.
    Killed,
}

impl Acting {
    pub(super) fn begin(agents: Agents, order: &str, inside: Inside) -> Self {
        let (clock, since) = (inside.clock.clone(), inside.clock.elapsed());
        let order = understood(&agents, order, inside);
        Self { agents, clock, since, order, sent: None, said: String::new(), looks: Vec::new() }
    }

    /// Works until it is done or its time is up.
    pub(super) async fn end(mut self) -> End {
        let (order, caller) = match std::mem::replace(&mut self.order, Err(String::new())) {
            Ok(found) => found,
            Err(why) => return end(&Report::new(Verdict::Refused, why)),
        };
        let clock = self.clock.clone();
        let outcome = tokio::select! {
            biased;
            outcome = self.follow(&order, &caller) => outcome,
            () = clock.sleep(order.within()) => {
                self.said = format!("killed after {} s", order.within().as_secs());
                Outcome::Verdict(Verdict::Unknown)
            }
        };
        match outcome {
            Outcome::Killed => End { code: KILLED, words: String::new() },
            Outcome::Verdict(verdict) => self.reported(verdict),
        }
    }

    fn reported(self, verdict: Verdict) -> End {
        let took_ms = self.now_ms();
        let report = Report { sent: self.sent, looks: self.looks, took_ms, ..Report::new(verdict, self.said) };
        match self.agents.behaves() {
            Agent::WrongReport => End { code: 0, words: "Success: Powered OFF\n".to_owned() },
            _ => end(&report),
        }
    }

    async fn follow(&mut self, order: &Order, caller: &Caller) -> Outcome {
        match order.task {
            Task::Off { only_if_on } => {
                if only_if_on {
                    match self.look(caller).await {
                        None => return Outcome::Killed,
                        Some(Shown::On) => {}
                        Some(_) => return self.refuse("the device does not say on, so nothing was sent"),
                    }
                }
                self.change(Action::Off, order, caller).await
            }
            Task::On => self.change(Action::On, order, caller).await,
            Task::Look { steady_ms } => self.look_for(steady_ms, caller).await,
        }
    }

    async fn change(&mut self, action: Action, order: &Order, caller: &Caller) -> Outcome {
        let word = if action == Action::Off { "off" } else { "on" };
        self.sent = Some(word.to_owned());
        let mut said = caller.call(action).await;
        for _ in 1..ALREADY {
            if action == Action::Off && said.code == 0 && said.out.contains("Already OFF") {
                self.clock.sleep(ALREADY_EVERY).await;
                said = caller.call(action).await;
            }
        }
        if said.killed {
            return Outcome::Killed;
        }
        let verdict = meaning(&said);
        self.said = [said.out, said.err].concat();
        if verdict == Verdict::Refused {
            self.sent = None;
            return Outcome::Verdict(verdict);
        }
        let wanted = if action == Action::Off { Shown::Off } else { Shown::On };
        while self.now_ms() < order.within_ms / 2 {
            match self.look(caller).await {
                None => return Outcome::Killed,
                Some(shown) if shown == wanted => break,
                Some(_) => self.clock.sleep(LOOK_EVERY).await,
            }
        }
        Outcome::Verdict(verdict)
    }

    async fn look_for(&mut self, steady_ms: u64, caller: &Caller) -> Outcome {
        loop {
            match self.look(caller).await {
                None => return Outcome::Killed,
                Some(Shown::Unknown) => return Outcome::Verdict(Verdict::Unknown),
                Some(Shown::On) => return Outcome::Verdict(Verdict::Taken),
                Some(Shown::Off) => {}
            }
            let first = self.looks.first().map_or(0, |look| look.began_ms);
            if self.looks.last().is_some_and(|last| last.began_ms >= first + steady_ms) {
                return Outcome::Verdict(Verdict::Taken);
            }
            self.clock.sleep(LOOK_EVERY).await;
        }
    }

    /// Looks once, and keeps what it saw; nothing if that was its end.
    async fn look(&mut self, caller: &Caller) -> Option<Shown> {
        let began_ms = self.now_ms();
        let said = caller.call(Action::Status).await;
        if said.killed {
            return None;
        }
        let state = match (said.code, &*said.out) {
            (2, "Status: OFF") => Shown::Off,
            (0, "Status: ON") => Shown::On,
            _ => Shown::Unknown,
        };
        if self.sent.is_none() {
            self.said = [said.out, said.err].concat();
        }
        self.looks.push(Look { began_ms, ended_ms: self.now_ms(), state });
        Some(state)
    }

    fn refuse(&mut self, why: &str) -> Outcome {
        why.clone_into(&mut self.said);
        Outcome::Verdict(Verdict::Refused)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.elapsed().saturating_sub(self.since).as_millis()).unwrap_or(u64::MAX)
    }
}

/// The order, and the device that it is about, reached with what is mounted into the pod.
fn understood(agents: &Agents, order: &str, inside: Inside) -> Result<(Order, Caller), String> {
    let order = Order::read(order).map_err(|why| why.to_string())?;
    let value = |name: &str| {
        if let Some(file) = order.secrets.get(name) {
            let found = inside.files.get(&format!("{SECRETS}/{file}"));
            return found.map(|text| text.trim_end_matches('\n').to_owned()).ok_or_else(|| format!("no file {file}"));
        }
        order.parameters.get(name).cloned().ok_or_else(|| format!("no parameter {name}"))
    };
    let (ip, user, password) = (value("ip")?, value("username")?, value("password")?);
    let system = value("systems_uri").ok();
    let panel = Panel::new(inside.bmcs.clone(), &ip, &user, &password, system);
    let caller = Caller::new(agents.clone(), panel, inside.clock);
    Ok((order, caller))
}

/// What an agent's words and exit code amount to, when it was told to change something.
fn meaning(said: &Said) -> Verdict {
    match said.code {
        0 if said.err.is_empty() => Verdict::Taken,
        // Its first question failed, so it came to nothing else.
        1 if ["Unable to connect/login", "Unable to obtain"].iter().any(|words| said.err.contains(words)) => {
            Verdict::Refused
        }
        _ => Verdict::Unknown,
    }
}
