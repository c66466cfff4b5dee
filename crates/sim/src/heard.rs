//! Heard: what becomes of the operators' requests on the wire, as lines of the trace.

use futures_util::future::BoxFuture;
use palisade_cluster::api::Wire;
use palisade_cluster::api::wire::{Call, Course, Delivery, Fate, Notice};

use crate::trace::{Did, Trace};

/// A wire whose losses are told.
pub(crate) struct Heard<W> {
    wire: W,
    trace: Trace,
}

impl<W> Heard<W> {
    pub(crate) fn new(wire: W, trace: Trace) -> Self {
        Self { wire, trace }
    }

    fn tell(&self, call: &Call, course: Course) {
        let (key, became) = match course {
            Course::Served => return,
            Course::Unreachable => ("unreachable", "never arrived".to_owned()),
            Course::Answered(code) => ("answered", format!("was answered {code} on the way")),
            Course::ReplyLost => ("reply-lost", "was served, and the answer is lost".to_owned()),
            Course::Hangs => ("hangs", "was served, and nobody ever answers".to_owned()),
        };
        self.trace.reached(format!("wire/{key}"));
        let name = call.key.as_ref().map(|key| format!(" {}", key.name)).unwrap_or_default();
        let part = if call.subresource.is_empty() { String::new() } else { format!("/{}", call.subresource) };
        let kind = self.trace.kind(call.kind);
        let text = format!("{} {kind}{name}{part} {became}", call.verb.word());
        self.trace.add(None, call.actor.name(), Did::Lost, "", text);
    }
}

impl<W: Wire> Wire for Heard<W> {
    fn carry(&self, call: &Call) -> Fate {
        let fate = self.wire.carry(call);
        self.tell(call, fate.course);
        fate
    }

    fn deliver(&self, watch: &Call, notice: &Notice) -> BoxFuture<'static, Delivery> {
        self.wire.deliver(watch, notice)
    }

    fn cut(&self, watch: &Call) -> BoxFuture<'static, ()> {
        self.wire.cut(watch)
    }
}
