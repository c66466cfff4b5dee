//! Listen: the operators' own words (`tracing`), as lines of the trace.
//!
//! A simulation is one thread, so the listener is that thread's default and hears nobody else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::trace::{Did, Trace};

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
    names: BTreeMap<u64, String>,
    entered: Vec<u64>,
}

impl Listener {
    pub(crate) fn new(trace: Trace) -> Self {
        Self { trace, spans: Mutex::default() }
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn speaker(&self) -> String {
        let spans = self.spans();
        let name = spans.entered.last().and_then(|id| spans.names.get(id));
        name.map_or_else(|| "palisade".to_owned(), Clone::clone)
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
        spans.names.insert(id, said.take("by"));
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut said = Said::default();
        event.record(&mut said);
        let speaker = self.speaker();
        if event.metadata().target() == DECIDED {
            decided(&self.trace, &speaker, said);
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

fn decided(trace: &Trace, speaker: &str, mut said: Said) {
    let (kind, what, node) = (said.take("kind"), said.take("what"), said.take("node"));
    let (reason, words) = (said.take("reason"), said.take("said"));
    let news = |about: &str, word: &str, well: &str| trace.is_news(format!("{speaker} {node} {about}"), word, well);
    let line = |did, text: String| trace.add(None, speaker, did, &node, text);
    match kind.as_str() {
        "gate" => {
            let answer = said.take("answer");
            if answer != "open" {
                trace.reached(format!("hold/{reason}"));
            }
            trace.reached(format!("gate/{what} {answer}"));
            if news(&format!("gate {what}"), &format!("{answer} {reason}"), "open ") && answer != "open" {
                line(Did::Decided, format!("{node}: gate {what} {answer}: {words}"));
            }
        }
        "transition" => line(Did::Decided, format!("{node}: {} -> {what}, {reason}: {words}", said.take("from"))),
        "effect" => {
            trace.reached(format!("effect/{what}"));
            line(Did::Decided, joined(&format!("{node}: {what}"), &[&reason, &words]));
        }
        "wait" => {
            if news("wait", &what, "") {
                line(Did::Decided, format!("{node}: waits, {what}: {words}"));
            }
        }
        "answer" => {
            trace.reached(format!("request/{what}"));
            line(Did::Decided, format!("{node}: the request is {what}: {words}"));
        }
        "request-effect" => trace.reached(format!("request-effect/{what}")),
        "detect" => {
            let rule = said.take("rule");
            if news(&format!("detect {rule}"), &what, "Quiet") {
                let found = if words.is_empty() { &what } else { &words };
                line(Did::Saw, joined(&format!("{node}: {rule}"), &[found]));
            }
        }
        "witness" => {
            if news(&format!("witness {what}"), &words, "Alive") {
                line(Did::Saw, format!("{node}: {what} says {words}"));
            }
        }
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
