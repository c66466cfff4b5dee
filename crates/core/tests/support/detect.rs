//! Golden cases of detect: a small stage on which facts happen one after the other, in our own time.
//!
//! `detector NAME` says who is asked; `look at=T` asks it. With `explain` the sentence for people is printed too.

use std::num::{NonZeroU32, NonZeroU64};

use palisade_core::detect::conditions::{SeenCondition, Threshold};
use palisade_core::detect::events::{Came, EventRule, SeenEvent};
use palisade_core::detect::lease::{LeaseThreshold, Needs, Others, SeenLease};
use palisade_core::detect::remedy::{self, Course, Due, Later, Remedy, RemedyRule, Rung};
use palisade_core::detect::sight::{Sight, Stint, Watch};
use palisade_core::detect::storage::{NextTry, StorageSettings};
use palisade_core::detect::witness::{Hearing, Place, Question, Testimony, Witness};
use palisade_core::detect::{Evidence, Finding, Health, NodeMemory, health};
use palisade_core::ident::{BootId, NodeName, ProviderName, Uid};
use palisade_core::policy::Policy;
use palisade_core::reason::detect::{AbstainReason, ClaimReason, RemedyReason, UnwellReason, WatchReason};
use palisade_core::snapshot::{NodeView, ObserverView, Ready, StorageNodeState, WitnessKind, WitnessWord};
use palisade_core::time::{Span, Tick};

use super::golden::{Fact, Room};

/// The rooms of this file.
pub fn rooms() -> Vec<Room> {
    let outcomes = [
        "Quiet",
        "Watching",
        "Claim",
        "Confirms",
        "Contradicts",
        "Abstains",
        "Confirmed",
        "Contradicted",
        "Nobody",
        "Run",
        "Wait",
        "Recover",
        "Nothing",
        "Healthy",
        "Unwell",
        "Clear",
        "Blind",
        "TryAgain",
        "TimedOut",
    ];
    let names = [
        ClaimReason::NAMES,
        WatchReason::NAMES,
        AbstainReason::NAMES,
        RemedyReason::NAMES,
        UnwellReason::NAMES,
        &outcomes,
    ];
    let must_show = names.concat().into_iter().map(str::to_owned).collect();
    vec![Room { files: "detect/*", run, must_show }]
}

fn run(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let mut stage = Stage::default();
    for mut fact in facts.drain(..) {
        stage.happen(&mut fact)?;
        fact.done()?;
    }
    Ok(stage.said())
}

#[derive(Default)]
struct Stage {
    detector: String,
    explain: bool,
    now: Tick,
    outage: Option<(Tick, Tick)>,
    memory: NodeMemory,
    listed: Vec<SeenCondition>,
    threshold: Option<Threshold>,
    rule: Option<EventRule>,
    settings: StorageSettings,
    policy: Policy,
    remedies: Vec<(RemedyRule, Threshold)>,
    course: Option<Course>,
    node: NodeView,
    began: Tick,
    fresh: Span,
    evidence: Vec<Evidence>,
    watch: Watch,
    stint: Stint,
    lines: Vec<(Tick, Vec<String>)>,
    missed: Option<NonZeroU64>,
    missed_when_off: Option<NonZeroU64>,
    needs: Option<Needs>,
    period: Span,
}

impl Stage {
    fn happen(&mut self, fact: &mut Fact) -> Result<(), String> {
        if let Some(at) = fact.value::<Span>("at")? {
            let at = tick(at);
            if at < self.now {
                return Err(fact.wrong("time runs backwards"));
            }
            self.now = at;
        }
        if let Some((from, to)) = self.outage
            && fact.kind != "look"
            && from < self.now
            && self.now < to
        {
            return Err(fact.wrong("nobody watched at that time"));
        }
        match fact.kind.as_str() {
            "detector" => self.detector = fact.word("its name")?,
            "explain" => self.explain = true,
            "outage" => {
                let from = tick(fact.value_or("from", Span::ZERO)?);
                self.outage = Some((from, tick(fact.value_or("to", Span::ZERO)?)));
            }
            "node" => {
                let uid = Uid::new(fact.text("uid").unwrap_or_else(|| "u1".to_owned()));
                let boot = fact.text("boot").map(BootId::new);
                self.memory.recognise(&uid, boot.as_ref());
            }
            "threshold" => self.threshold = Some(threshold(&words(fact, 3)?)?),
            "condition" => self.condition(fact)?,
            "lease" => self.lease(fact)?,
            "ready" => self.node.ready = ready(&fact.word("True, False or Unknown")?)?,
            "lease-silent" => self.node.lease_silent = true,
            "witness" => self.witness(fact)?,
            "silence" => {
                self.began = tick(fact.value_or("began", Span::ZERO)?);
                self.fresh = fact.value_or("fresh", Span::millis(10_400))?;
            }
            "needs" => {
                let needs = match fact.word("what seconds a silence")?.as_str() {
                    "witness" => Needs::Witness,
                    "witness-or-control-plane" => Needs::WitnessOrControlPlane,
                    "nothing" => Needs::Nothing,
                    other => return Err(fact.wrong(&format!("nothing is called `{other}`"))),
                };
                self.needs = Some(needs);
                self.missed = fact.value("missed")?;
                self.missed_when_off = fact.value("missed-when-off")?;
                let trusted = self.policy.witness.trusted_for;
                self.policy.witness.trusted_for = fact.value_or("trusted", trusted)?;
            }
            "flags" => self.flags(fact)?,
            "storage" => self.storage(fact)?,
            "period" => self.period = fact.word("how long")?.parse().map_err(|why| format!("{why}"))?,
            "claimed" => self.memory.storage.entry(provider()).or_default().claimed(self.now),
            "event-rule" => {
                let event = fact.word("the event's reason")?.into();
                let limit = fact.value_or("limit", NonZeroU32::MIN)?;
                let window = fact.value_or("window", Span::mins(10))?;
                let source = fact.text("source").map(Into::into);
                self.rule = Some(EventRule { event, source, limit, window });
            }
            "event" => self.event(fact)?,
            "forget" => self.memory.events.forget(fact.value_or("longest", Span::ZERO)?, self.now),
            "remedy" => self.remedy(fact)?,
            "restart" => self.restart(),
            "evidence" => self.evidence.push(evidence(&fact.word("what it is")?, fact)?),
            "answered" => self.watch.answered(self.policy.observer_fresh, self.now),
            "resumed" => self.stint = Stint::resumed(fact.value_or("watched", Span::ZERO)?),
            "operation" => self.operation(fact)?,
            "skipped" => self.skipped(fact)?,
            "last-renewal" => {
                let seen = self.memory.lease.last_renewal();
                let line = seen.map_or("no renewal seen".to_owned(), |at| format!("renewal seen at={at}"));
                self.lines.push((self.now, vec![line]));
            }
            "look" => self.look(fact)?,
            _ => return Err(fact.wrong("nobody understands this kind of fact")),
        }
        Ok(())
    }

    fn condition(&mut self, fact: &mut Fact) -> Result<(), String> {
        let reason = fact.text("reason").unwrap_or_else(|| "Reported".to_owned());
        // The detector's input has no place for transition times: there is nothing to hand on.
        fact.text("transition");
        if fact.flag("missing") {
            let gone = fact.word("the condition's type")?;
            self.listed.retain(|one| *one.condition != *gone);
        }
        let pairs = fact.rest();
        self.listed.retain(|one| !pairs.iter().any(|(kind, _)| *one.condition == **kind));
        self.listed.extend(pairs.into_iter().map(|(condition, status)| SeenCondition {
            condition: condition.into(),
            status: status.into(),
            reason: reason.clone().into(),
        }));
        self.memory.conditions.observe(&self.listed, self.now);
        Ok(())
    }

    fn lease(&mut self, fact: &mut Fact) -> Result<(), String> {
        let lease = SeenLease {
            holder: Some(fact.text("holder").unwrap_or_else(|| "n1".to_owned()).into()),
            seconds: Some(fact.value_or("duration", 40)?),
            renewed: fact.text("renewed").map(Into::into),
        };
        let seen = if fact.flag("absent") { None } else { Some(lease) };
        let seen = seen.map(|lease| SeenLease {
            holder: if fact.flag("unheld") { None } else { lease.holder },
            seconds: if fact.flag("no-duration") { None } else { lease.seconds },
            renewed: lease.renewed,
        });
        self.memory.lease.observe(seen, self.now);
        Ok(())
    }

    fn witness(&mut self, fact: &mut Fact) -> Result<(), String> {
        let place = if fact.flag("standby") { Place::Standby } else { Place::Here };
        let kind = match fact.word("who")?.as_str() {
            "kubelet-port" => WitnessKind::KubeletPort,
            "bmc-power" => WitnessKind::BmcPower,
            "storage-heartbeat" => WitnessKind::StorageHeartbeat,
            other => return Err(fact.wrong(&format!("no witness is called `{other}`"))),
        };
        let word = match fact.word("its word")?.as_str() {
            "alive" | "on" => WitnessWord::Alive,
            "silent" | "off" => WitnessWord::Silent,
            "unknown" => WitnessWord::Unknown,
            other => return Err(fact.wrong(&format!("no witness says `{other}`"))),
        };
        self.memory.witnesses.observe(Witness { kind, place }, word, self.now);
        Ok(())
    }

    fn flags(&mut self, fact: &mut Fact) -> Result<(), String> {
        let before = self.settings;
        self.settings = before.polling(fact.value_or("node-poll-interval", before.poll())?);
        self.settings.expiry = fact.value_or("node-expiry-interval", before.expiry)?;
        self.settings.timeout = fact.value_or("node-fencer-timeout", before.timeout)?;
        self.settings.retry = fact.value_or("node-fencer-retry-interval", before.retry)?;
        Ok(())
    }

    fn storage(&mut self, fact: &mut Fact) -> Result<(), String> {
        // Only the state of the record reaches the detector.
        for ignored in ["capacity", "version"] {
            fact.text(ignored);
        }
        let said = match fact.word("the node's state")?.as_str() {
            "online" => Some(StorageNodeState::Online),
            "offline" => Some(StorageNodeState::Offline),
            "unknown" => Some(StorageNodeState::Unknown),
            "unlisted" => None,
            other => return Err(fact.wrong(&format!("no storage says `{other}`"))),
        };
        self.memory.storage.entry(provider()).or_default().observe(said, &self.settings, self.now);
        Ok(())
    }

    fn event(&mut self, fact: &mut Fact) -> Result<(), String> {
        let uid = Uid::new(fact.word("the Event's UID")?);
        if fact.flag("gone") {
            self.memory.events.gone(&uid);
            return Ok(());
        }
        let came = if fact.flag("listed") { Came::Listed } else { Came::Watched };
        let count = fact.value("count")?;
        let reason = fact.word("its reason")?.into();
        let source = fact.text("source").unwrap_or("kernel-monitor".to_owned()).into();
        self.memory.events.observe(&SeenEvent { uid, reason, source, count, came }, self.now);
        Ok(())
    }

    fn remedy(&mut self, fact: &mut Fact) -> Result<(), String> {
        let clean = fact.list("clean");
        let rung =
            |name: &str| Rung { remedy: Remedy::from(name), clean_resources: clean.iter().any(|one| one == name) };
        let first = fact.text("first").ok_or("first= is missing")?;
        let mut later = Vec::new();
        for step in fact.list("then") {
            let (name, after) = step.split_once(':').ok_or("write then=NAME:PERIOD")?;
            let after = after.parse().map_err(|why| fact.wrong(&format!("{why}")))?;
            later.push(Later { after, rung: rung(name) });
        }
        let on: Vec<String> = fact.text("on").unwrap_or_default().split(' ').map(str::to_owned).collect();
        let rule = RemedyRule {
            name: fact.word("its name")?.into(),
            priority: fact.value_or("priority", 0)?,
            first: rung(&first),
            later,
            recovery: fact.text("recovery").map(|name| Remedy::from(name.as_str())),
        };
        let known = self.remedies.iter().position(|(one, _)| one.name == rule.name);
        match known {
            Some(at) if fact.flag("removed") => drop(self.remedies.remove(at)),
            Some(_) | None => self.remedies.push((rule, threshold(&on)?)),
        }
        Ok(())
    }

    /// The process starts again: memory is lost, and of the course only the watched time is left.
    fn restart(&mut self) {
        self.memory = NodeMemory::default();
        self.memory.conditions.observe(&self.listed, self.now);
        if let Some(course) = &mut self.course {
            course.watched = Stint::resumed(course.watched.total());
        }
        self.stint = Stint::resumed(self.stint.total());
    }

    fn sight(&self) -> Sight {
        match self.outage {
            Some((from, to)) if from < self.now && self.now < to => Sight::Blind { since: from },
            Some((_, to)) if to <= self.now => Sight::Clear { since: to },
            Some(_) | None => Sight::Clear { since: Tick::START },
        }
    }

    fn look(&mut self, fact: &Fact) -> Result<(), String> {
        let (now, sight) = (self.now, self.sight());
        let lines = match self.detector.as_str() {
            "conditions" => {
                let threshold = self.threshold.as_ref().ok_or("there is no threshold")?;
                self.finding(&self.memory.conditions.judge(threshold, sight, now))
            }
            "lease" => {
                let others = Others { witnesses: &self.memory.witnesses, ready: self.node.ready };
                let node = NodeName::from("n1");
                let trusted = self.policy.witness.trusted_for;
                let missed = self.missed.unwrap_or(NonZeroU64::MIN.saturating_add(1));
                let needs = self.needs.unwrap_or(Needs::WitnessOrControlPlane);
                let missed_when_off = self.missed_when_off.unwrap_or(NonZeroU64::MIN);
                let by = LeaseThreshold { missed, missed_when_off, needs, trusted };
                self.finding(&self.memory.lease.judge(&node, &by, others, sight, now))
            }
            "witness" => self.hearing(),
            "storage" => {
                let memory = self.memory.storage.get(&provider()).copied().unwrap_or_default();
                self.finding(&memory.judge(&provider(), self.period, &self.settings, now))
            }
            "events" => {
                let rule = self.rule.as_ref().ok_or("there is no rule")?;
                self.finding(&self.memory.events.judge(rule, sight, now))
            }
            "remedy" => self.due(sight),
            "health" => match health(&self.node, &self.evidence) {
                Health::Healthy => vec!["Healthy".to_owned()],
                Health::Unwell { why } => self.told(format!("Unwell {}", why.brief()), &why),
            },
            "sight" => self.sight_now(),
            other => return Err(fact.wrong(&format!("no detector is called `{other}`"))),
        };
        self.lines.push((now, lines));
        Ok(())
    }

    fn told(&self, brief: String, sentence: &impl ToString) -> Vec<String> {
        let mut lines = vec![brief];
        if self.explain {
            lines.push(format!("\"{}\"", sentence.to_string()));
        }
        lines
    }

    fn finding(&self, finding: &Finding) -> Vec<String> {
        match finding {
            Finding::Quiet => vec![finding.brief()],
            Finding::Watching { why, .. } => self.told(finding.brief(), why),
            Finding::Claim { why } => self.told(finding.brief(), why),
        }
    }

    fn hearing(&self) -> Vec<String> {
        let trusted = self.policy.witness.trusted_for;
        let about = Question { began: self.began, trusted, fresh: self.fresh };
        let mut lines = Vec::new();
        for (who, testimony) in self.memory.witnesses.testimonies(about, self.now) {
            match testimony {
                Testimony::Confirms => lines.push(format!("{who} Confirms")),
                Testimony::Contradicts => lines.push(format!("{who} Contradicts")),
                Testimony::Abstains { why } => {
                    lines.extend(self.told(format!("{who} Abstains {}", why.brief()), &why));
                }
            }
        }
        lines.push(match self.memory.witnesses.hear(about, self.now) {
            Hearing::Confirmed { by } => format!("Confirmed by={by}"),
            Hearing::Contradicted { by } => format!("Contradicted by={by}"),
            Hearing::Nobody { abstained } => format!("Nobody abstained={abstained}"),
        });
        lines
    }

    fn due(&mut self, sight: Sight) -> Vec<String> {
        let now = self.now;
        let found = |(rule, on): &(RemedyRule, Threshold)| (rule.clone(), self.memory.conditions.judge(on, sight, now));
        let rules: Vec<_> = self.remedies.iter().map(found).collect();
        let (course, due) = remedy::due(&rules, self.course.take(), sight, now);
        self.course = course;
        match due {
            Due::Nothing => vec!["Nothing".to_owned()],
            Due::Run { rung, why } => {
                let clean = if rung.clean_resources { " clean-resources" } else { "" };
                self.told(format!("Run {}{clean} {}", rung.remedy, why.brief()), &why)
            }
            Due::Wait { why, until } => self.told(format!("Wait {} until={until}", why.brief()), &why),
            Due::Recover { remedy, why } => {
                let remedy = remedy.map_or("without-remedy".to_owned(), |r| r.to_string());
                self.told(format!("Recover {remedy} {}", why.brief()), &why)
            }
        }
    }

    fn sight_now(&mut self) -> Vec<String> {
        let fresh = self.policy.observer_fresh;
        let sight = self.watch.sight(fresh, self.now);
        let view = ObserverView {
            api_last_answered: self.watch.last_answer(),
            outage_ended: self.watch.outage_ended(),
            ..ObserverView::default()
        };
        // The snapshot's observer sees the same, but that it does not know when the process first saw anything.
        let same = match (sight, Sight::of(&view, fresh, self.now)) {
            (Sight::Blind { since: a }, Sight::Blind { since: b }) => a == b,
            (Sight::Clear { since: a }, Sight::Clear { since: b }) => a == b || b == Tick::START,
            (Sight::Clear { .. }, Sight::Blind { .. }) | (Sight::Blind { .. }, Sight::Clear { .. }) => false,
        };
        assert!(same, "the watch and the snapshot disagree");
        let watched = self.stint.watch(sight, self.now);
        let ended = self.watch.outage_ended().map(|at| format!(" outage-ended={at}")).unwrap_or_default();
        vec![match sight {
            Sight::Clear { since } => format!("Clear since={since} watched={watched}{ended}"),
            Sight::Blind { since } => format!("Blind since={since} watched={watched}{ended}"),
        }]
    }

    fn operation(&mut self, fact: &mut Fact) -> Result<(), String> {
        let began = tick(fact.value_or("began", Span::ZERO)?);
        let failed = tick(fact.value_or("failed", Span::ZERO)?);
        let line = match self.settings.next_try(began, failed) {
            NextTry::At(at) => format!("TryAgain at={at}"),
            NextTry::TimedOut { took } => {
                format!("TimedOut took={took} limit={}", self.settings.timeout)
            }
        };
        self.lines.push((self.now, vec![line]));
        Ok(())
    }

    fn skipped(&mut self, fact: &mut Fact) -> Result<(), String> {
        let pods = fact.value_or("pods", 0)?;
        let line = match self.settings.look_again_at(pods, self.now) {
            Some(at) => format!("look at the pods again at={at}"),
            None => "no pod to look at again".to_owned(),
        };
        self.lines.push((self.now, vec![line]));
        Ok(())
    }

    /// One look: its lines. Several looks: each line with its time.
    fn said(self) -> Vec<String> {
        let several = self.lines.len() > 1;
        let with_time = |(at, lines): (Tick, Vec<String>)| {
            lines.into_iter().map(move |line| if several { format!("{at} {line}") } else { line }).collect::<Vec<_>>()
        };
        self.lines.into_iter().flat_map(with_time).collect()
    }
}

fn tick(since_start: Span) -> Tick {
    Tick::START + since_start
}

fn provider() -> ProviderName {
    ProviderName::from("storageos")
}

fn words(fact: &mut Fact, count: usize) -> Result<Vec<String>, String> {
    (0..count).map(|_| fact.word("type, status and period")).collect()
}

fn threshold(words: &[String]) -> Result<Threshold, String> {
    let [condition, status, period] = words else {
        return Err("a threshold is written as `Ready false 5s`".to_owned());
    };
    Ok(Threshold {
        condition: condition.as_str().into(),
        status: status.parse()?,
        period: period.parse().map_err(|why| format!("{why}"))?,
    })
}

fn ready(text: &str) -> Result<Ready, String> {
    match text {
        "True" => Ok(Ready::True),
        "False" => Ok(Ready::False),
        "Unknown" => Ok(Ready::Unknown),
        other => Err(format!("Ready is never `{other}`")),
    }
}

/// Findings for health, by what they mean.
fn evidence(what: &str, fact: &Fact) -> Result<Evidence, String> {
    let watching = |why| Evidence::Found(Finding::Watching { why, until: Tick::START });
    Ok(match what {
        "quiet" => Evidence::Found(Finding::Quiet),
        "claim" => Evidence::Found(Finding::Claim {
            why: ClaimReason::StorageOffline { provider: provider(), offline: Span::ZERO },
        }),
        "claimed-and-still-offline" => {
            watching(WatchReason::StorageAlreadyClaimed { provider: provider(), offline: Span::ZERO })
        }
        "condition-missing" => watching(WatchReason::ConditionMissing { condition: "KernelDeadlock".into() }),
        "asked" => Evidence::Asked { done: false },
        "asked-and-done" => Evidence::Asked { done: true },
        "withdrawn" => Evidence::Withdrawn,
        other => return Err(fact.wrong(&format!("no evidence is called `{other}`"))),
    })
}
