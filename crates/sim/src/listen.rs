//! Listen: the operators' own words (`tracing`), as lines of the trace.
//!
//! A simulation is one thread, so the listener is that thread's default and hears nobody else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::trace::{Did, News, Trace};

/// Where operators tell what they decide.
const DECIDED: &str = "palisade::decided";

/// Hears everything that an operator says.
pub(crate) struct Listener {
    trace: Trace,
    spans: Mutex<Spans>,
}

/// Who speaks: the replica whose span was entered last.
#[derive(Default)]
struct Spans {
    made: u64,
    names: BTreeMap<u64, Arc<str>>,
    entered: Vec<u64>,
}

impl Listener {
    pub(crate) fn new(trace: Trace) -> Self {
        Self { trace, spans: Mutex::default() }
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn speaker(&self) -> Arc<str> {
        let spans = self.spans();
        let name = spans.entered.last().and_then(|id| spans.names.get(id));
        name.map_or_else(|| "palisade".into(), Arc::clone)
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("palisade")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut said = Said::default();
        attributes.record(&mut said);
        let mut spans = self.spans();
        spans.made += 1;
        let id = spans.made;
        spans.names.insert(id, said.take("by").into());
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let decided = event.metadata().target() == DECIDED;
        let mut news = News::First;
        if decided {
            // Most of what is said is what was said before: a glance, without taking anything down, is enough for that.
            let mut glance = Glance::default();
            event.record(&mut glance);
            if glance.repeats {
                let mut about = glance.about;
                about.take_in(&self.speaker());
                news = self.trace.news(about.0, glance.word.0);
            }
        }
        if news == News::Known {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let speaker = self.speaker();
        if decided {
            tell(&self.trace, &speaker, said, news);
        } else {
            logged(&self.trace, &speaker, said);
        }
    }

    fn enter(&self, id: &Id) {
        self.spans().entered.push(id.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.spans().entered.pop();
    }

    fn try_close(&self, id: Id) -> bool {
        self.spans().names.remove(&id.into_u64()).is_some()
    }
}

/// The fields of an event or a span.
#[derive(Default)]
struct Said(BTreeMap<&'static str, String>);

impl Said {
    fn take(&mut self, field: &str) -> String {
        self.0.remove(field).unwrap_or_default()
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// A hash of words (FNV-1a).
#[derive(Clone, Copy)]
struct Words(u64);

impl Default for Words {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Words {
    fn take_in(&mut self, word: &str) {
        // A byte that is in no text stands between two words.
        for byte in word.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// What is said of what, as hashes. The kind is always said first.
#[derive(Default)]
struct Glance {
    /// It is said on every look, whether it has changed or not.
    repeats: bool,
    /// The word itself is what is found, and not what it is about.
    names_what: bool,
    about: Words,
    word: Words,
}

impl Visit for Glance {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "kind" => {
                self.repeats = matches!(value, "gate" | "wait" | "detect" | "witness");
                self.names_what = matches!(value, "wait" | "detect");
                self.about.take_in(value);
            }
            "what" if self.names_what => self.word.take_in(value),
            "what" | "node" | "rule" => self.about.take_in(value),
            _ => self.word.take_in(value),
        }
    }

    /// What has to be put into words first only explains the rest.
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

fn tell(trace: &Trace, speaker: &str, mut said: Said, news: News) {
    let (kind, what, node) = (said.take("kind"), said.take("what"), said.take("node"));
    let (reason, words) = (said.take("reason"), said.take("said"));
    let line = |did, text: String| trace.add(None, speaker, did, &node, text);
    match kind.as_str() {
        "gate" => {
            let answer = said.take("answer");
            trace.reached(format!("gate/{what} {answer}"));
            if answer != "open" {
                trace.reached(format!("hold/{reason}"));
                line(Did::Decided, format!("{node}: gate {what} {answer}: {words}"));
            }
        }
        "transition" => line(Did::Decided, format!("{node}: {} -> {what}, {reason}: {words}", said.take("from"))),
        "effect" => {
            trace.reached(format!("effect/{what}"));
            line(Did::Decided, joined(&format!("{node}: {what}"), &[&reason, &words]));
        }
        "wait" => line(Did::Decided, format!("{node}: waits, {what}: {words}")),
        "answer" => {
            trace.reached(format!("request/{what}"));
            line(Did::Decided, format!("{node}: the request is {what}: {words}"));
        }
        "request-effect" => trace.reached(format!("request-effect/{what}")),
        // Before anything was said of a node, all is well with it.
        "detect" if news == News::First && what == "Quiet" => {}
        "detect" => {
            let found = if words.is_empty() { &what } else { &words };
            line(Did::Saw, joined(&format!("{node}: {}", said.take("rule")), &[found]));
        }
        "witness" if news == News::First && words == "alive" => {}
        "witness" => line(Did::Saw, format!("{node}: {what} says {words}")),
        _ => line(Did::Saw, format!("{node}: {what}: {words}")),
    }
}

fn joined(first: &str, rest: &[&str]) -> String {
    let rest: Vec<&str> = rest.iter().copied().filter(|word| !word.is_empty()).collect();
    if rest.is_empty() { first.to_owned() } else { format!("{first}, {}", rest.join(": ")) }
}

fn logged(trace: &Trace, speaker: &str, mut said: Said) {
    let (node, message) = (said.take("node"), said.take("message"));
    // kube prints the whole Status after its message; the message is enough.
    let brief = |value: &str| value.split(" (Status {").next().unwrap_or_default().to_owned();
    let rest: Vec<String> = said.0.iter().map(|(name, value)| format!("{name}={}", brief(value))).collect();
    let words = [node.clone(), message, rest.join(" ")];
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    trace.add(None, speaker, Did::Logged, &node, words.join(": "));
}
