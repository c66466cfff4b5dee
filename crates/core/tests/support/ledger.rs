//! Golden cases of the ledger: a ledger, what is asked of it, and the ledger that is written.

use palisade_core::ident::{NodeName, Uid};
use palisade_core::ledger::{
    Entry, Found, Full, GiveBack, Ledger, LiveFence, LiveGet, ReadNumber, Take, give_back, rebuild, sweep, take,
};
use palisade_core::policy::Budget;
use palisade_core::time::Span;

use crate::golden::{Fact, Room};
use crate::vet::rate;

/// The rooms of the ledger.
pub fn rooms() -> Vec<Room> {
    let room = |files, words: &[&str]| Room { files, run, must_show: words.iter().map(|w| (*w).to_owned()).collect() };
    vec![
        room("ledger/take", &["Write", "Already", "Missing", "Concurrency", "ControlPlane", "Spacing", "Rate"]),
        room("ledger/give-back", &["Write", "NotThere"]),
        room("ledger/sweep", &["Write", "Nothing"]),
        room("ledger/rebuild", &["Write"]),
    ]
}

struct World {
    policy: Uid,
    budget: Budget,
    ledger: Option<Ledger>,
    read: ReadNumber,
    gets: Vec<LiveGet>,
    live: Vec<LiveFence>,
    lines: Vec<String>,
}

fn run(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let policy = Uid::from("p1");
    let mut world = World {
        budget: Budget { max_concurrent: 1, spacing: Span::ZERO, rate: None },
        ledger: Some(Ledger { policy_uid: policy.clone(), ..Ledger::default() }),
        policy,
        read: ReadNumber(0),
        gets: Vec::new(),
        live: Vec::new(),
        lines: Vec::new(),
    };
    for mut fact in std::mem::take(facts) {
        world.learn(&mut fact)?;
        fact.done()?;
    }
    Ok(world.lines)
}

impl World {
    /// Facts and questions are read in order: what a question writes is the ledger of the next one.
    fn learn(&mut self, fact: &mut Fact) -> Result<(), String> {
        match fact.kind.as_str() {
            "policy" => {
                self.policy = fact.text("uid").map_or(self.policy.clone(), Uid::new);
                self.budget.max_concurrent = fact.value_or("max", self.budget.max_concurrent)?;
                self.budget.spacing = fact.value_or("spacing", self.budget.spacing)?;
                self.budget.rate = rate(fact)?.or(self.budget.rate);
            }
            "ledger" => {
                let missing = fact.flag("none");
                let policy_uid = fact.text("for").map_or(self.policy.clone(), Uid::new);
                self.read = ReadNumber(fact.value_or("read", 0)?);
                self.ledger = (!missing).then(|| Ledger { policy_uid, ..Ledger::default() });
            }
            "slot" => {
                let (fence, entry) = (uid(fact)?, entry(fact)?);
                self.known(fact)?.entries.insert(fence, entry);
            }
            "granted" => {
                let ages =
                    fact.list("ages").into_iter().map(|age| age.parse().map_err(|why| fact.wrong(&format!("{why}"))));
                let ages = ages.collect::<Result<Vec<_>, _>>()?;
                self.known(fact)?.grants = ages;
            }
            "watched" => {
                let by = fact.word("how long")?.parse().map_err(|why| fact.wrong(&format!("{why}")))?;
                self.ledger = self.ledger.as_ref().map(|ledger| ledger.aged(by, &self.budget));
            }
            "get" => {
                let node = NodeName::new(fact.word("the node")?);
                let begun = ReadNumber(fact.value_or("begun", 0)?);
                let found = match fact.word("what was found")?.as_str() {
                    "404" => Found::Gone,
                    "timeout" => Found::Unknown,
                    uid => Found::Fence(Uid::from(uid)),
                };
                self.gets.push(LiveGet { node, begun, found });
            }
            "live" => {
                let (fence, slot) = (uid(fact)?, !fact.flag("no-slot"));
                self.live.push(LiveFence { fence, entry: entry(fact)?, slot });
            }
            "take" => self.take(fact)?,
            "give-back" => self.give_back(fact)?,
            "sweep" => {
                let read = self.read;
                let gets = std::mem::take(&mut self.gets);
                let swept = sweep(self.known(fact)?, read, &gets);
                self.write("Nothing", swept);
            }
            "rebuild" => {
                let built = rebuild(&self.policy, &self.live);
                self.write("", Some(built));
            }
            other => return Err(fact.wrong(&format!("nobody understands a fact `{other}`"))),
        }
        Ok(())
    }

    fn take(&mut self, fact: &mut Fact) -> Result<(), String> {
        let (fence, entry) = (uid(fact)?, entry(fact)?);
        match take(self.ledger.as_ref(), &self.policy, &fence, entry, &self.budget) {
            Take::Write(next) => self.write("", Some(next)),
            Take::Already => self.lines.push("Already".to_owned()),
            Take::Missing => self.lines.push("Missing".to_owned()),
            Take::Full(full) => self.lines.push(format!("Full {}", told(&full))),
        }
        Ok(())
    }

    fn give_back(&mut self, fact: &mut Fact) -> Result<(), String> {
        let (fence, grant) = (uid(fact)?, fact.value_or("grant", 1)?);
        let next = match give_back(self.known(fact)?, &fence, grant) {
            GiveBack::Write(next) => Some(next),
            GiveBack::NotThere => None,
        };
        self.write("NotThere", next);
        Ok(())
    }

    fn write(&mut self, otherwise: &str, next: Option<Ledger>) {
        let Some(next) = next else { return self.lines.push(otherwise.to_owned()) };
        let slots = next.entries.iter().map(|(fence, entry)| {
            let member = if entry.control_plane { "/control-plane" } else { "" };
            let again = if entry.grant > 1 { format!("/{}", entry.grant) } else { String::new() };
            format!("{fence}/{}{member}{again}", entry.node)
        });
        let granted = next.grants.iter().map(ToString::to_string);
        let list = |parts: Vec<String>| if parts.is_empty() { "none".to_owned() } else { parts.join(",") };
        let (slots, granted) = (list(slots.collect()), list(granted.collect()));
        self.lines.push(format!("Write for={} slots={slots} granted={granted}", next.policy_uid));
        self.ledger = Some(next);
    }

    fn known(&mut self, fact: &Fact) -> Result<&mut Ledger, String> {
        self.ledger.as_mut().ok_or_else(|| fact.wrong("there is no ledger"))
    }
}

fn told(full: &Full) -> String {
    match full {
        Full::Concurrency { in_flight, allowed } => format!("Concurrency in_flight={in_flight} allowed={allowed}"),
        Full::ControlPlane { by } => format!("ControlPlane by={by}"),
        Full::Spacing { since, spacing } => format!("Spacing since={since} spacing={spacing}"),
        Full::Rate { granted, allowed, per, left } => {
            format!("Rate granted={granted} allowed={allowed} per={per} left={left}")
        }
    }
}

fn uid(fact: &mut Fact) -> Result<Uid, String> {
    fact.word("the fence").map(Uid::new)
}

fn entry(fact: &mut Fact) -> Result<Entry, String> {
    let node = fact.text("node").ok_or_else(|| fact.wrong("node= is missing"))?;
    Ok(Entry {
        node: NodeName::new(node),
        control_plane: fact.flag("control-plane"),
        grant: fact.value_or("grant", 1)?,
    })
}
