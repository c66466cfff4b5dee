//! Accept: FenceConfigs, FenceTemplates, NodeRemedies and the FencePolicy say in their own status whether they can be used.
//!
//! FenceTemplates also say how their devices are, as far as the checks know: one writer for all conditions of an object, so that none
//! is lost. What cannot even be read as an object of its kind is told here too, by the same condition.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams};
use palisade_api::conditions::{
    ACCEPTED, Condition, DEVICES_HEALTHY, LEDGER_READY, NOT_CARRIED_OUT, NOT_UNDERSTOOD, NOT_USABLE, OBSERVING, Truth,
};
use palisade_api::template::FenceTemplateStatus;
use palisade_api::{FenceConfig, FencePolicy, FenceTemplate, NodeRemedy};
use palisade_core::ident::Uid;
use palisade_core::pace::pause;
use palisade_core::preflight::{Health, How};
use palisade_core::resolve::accept::{Standing, acceptance};
use palisade_core::resolve::policy;
use palisade_core::time::{Span, Tick};
use serde_json::{Value, json};

use crate::context::Context;
use crate::effects::ledger_of;
use crate::events::{self, Tone};
use crate::leader::Hold;
use crate::news::{News, NotUnderstood};
use crate::preflight::Words;
use crate::said::brief;
use crate::view::View;

/// Several objects are often applied together: one that misses another is not told before that one had its time.
const SETTLE: Span = Span::secs(3);
/// However quiet it is, everything is looked at this often: labels of nodes change, too.
const AT_LEAST: Span = Span::mins(10);
/// How many characters a condition's message may have.
const LONGEST: usize = 1024;

/// When to look.
#[derive(Debug, Default)]
pub(crate) struct Accept {
    /// What was there when last looked at, and since when there is something else.
    known: u64,
    changed: Option<Tick>,
    looked: Option<Tick>,
    writing: bool,
    failed: u32,
    /// Objects that cannot be understood, by kind and name, until that is said.
    bad: BTreeMap<(String, String), NotUnderstood>,
}

impl Accept {
    /// An object cannot be understood.
    pub(crate) fn not_understood(&mut self, bad: NotUnderstood, now: Tick) {
        self.bad.insert((bad.kind.clone(), bad.name.clone()), bad);
        self.changed = Some(now);
    }

    /// What has to be said that is not said yet.
    pub(crate) fn words(&self, view: &View, observes: bool, devices: &Words, now: Timestamp) -> Vec<Word> {
        let bad = self.bad.values().filter_map(|bad| not_understood(bad, now));
        words(view, observes, devices, now).into_iter().chain(bad).collect()
    }

    /// Whether it is time to look; if so, that is noted. `observes`: whether we see enough of the cluster to judge others.
    /// `devices`: another number, if there is something else to be said of devices.
    pub(crate) fn is_due(&mut self, view: &View, observes: bool, devices: u64, now: Tick) -> bool {
        let there = fingerprint(view, observes, devices);
        if there != self.known {
            (self.known, self.changed) = (there, Some(now));
        }
        let wait = SETTLE.max(pause(self.failed.saturating_add(1)));
        let settled = self.changed.is_some_and(|at| now >= at + wait);
        let old = self.looked.is_some_and(|at| now >= at + AT_LEAST);
        if self.writing || !(settled || old) {
            return false;
        }
        (self.changed, self.looked) = (None, Some(now));
        true
    }

    /// Something is being written.
    pub(crate) fn writes(&mut self) {
        self.writing = true;
    }

    /// It was written, or not: then it is looked at again.
    pub(crate) fn written(&mut self, all: bool, now: Tick) {
        self.writing = false;
        self.failed = if all { 0 } else { self.failed.saturating_add(1) };
        if all {
            self.bad.clear();
        } else {
            self.changed = Some(now);
        }
    }
}

/// Changes with everything that is looked at, but for the labels of nodes; not with what we write ourselves.
fn fingerprint(view: &View, observes: bool, devices: u64) -> u64 {
    let mut hash = DefaultHasher::new();
    let mut take = |meta: &ObjectMeta| (&meta.uid, meta.generation).hash(&mut hash);
    view.configs.values().for_each(|one| take(&one.metadata));
    view.templates.values().for_each(|one| take(&one.metadata));
    view.remedies.values().for_each(|one| take(&one.metadata));
    view.policy.iter().for_each(|one| take(&one.metadata));
    let built_for = |policy: &FencePolicy| policy.status.as_ref().and_then(|status| status.policy_uid.clone());
    let ledger = view.policy.as_ref().is_some_and(|policy| built_for(policy) == policy.metadata.uid);
    (view.nodes().len(), ledger, observes, devices).hash(&mut hash);
    hash.finish()
}

/// What is to be written into the status of one object.
#[derive(Debug)]
pub(crate) struct Word {
    about: ObjectReference,
    status: Value,
    /// What people are told: that it can no longer be used, or can be again.
    told: Option<Told>,
}

/// What people are told, and its reason.
type Told = (Tone, String, String);

/// What has to be said of everything that is understood.
fn words(view: &View, observes: bool, devices: &Words, now: Timestamp) -> Vec<Word> {
    let nodes = view.nodes().iter().filter_map(|(node, track)| Some((node, &track.facts.as_ref()?.labels))).collect();
    let configs = view.configs.iter().map(|(name, one)| (name.as_str(), &one.spec)).collect();
    let templates = view.templates.iter().map(|(name, one)| (name.as_str(), &one.spec)).collect();
    let remedies = view.remedies.iter().map(|(name, one)| (name.as_str(), &one.spec)).collect();
    let all = acceptance(&nodes, &configs, &templates, &remedies, view.declared_power());
    let mut words = Vec::new();
    for (name, accepted) in &all.configs {
        let Some(object) = view.configs.get(*name) else { continue };
        let status = object.status.clone().unwrap_or_default();
        let nodes = vec![Count { field: "nodes", said: status.nodes, there: accepted.nodes }];
        words.extend(word(object, &status.conditions, vec![Wanted::accepted(&accepted.standing)], nodes, now));
    }
    for (name, accepted) in &all.templates {
        let Some(object) = view.templates.get(*name) else { continue };
        let status = object.status.clone().unwrap_or_default();
        let (healthy, counts) = devices_healthy(object, &status, devices);
        let wanted = [Some(Wanted::accepted(&accepted.standing)), healthy].into_iter().flatten().collect();
        words.extend(word(object, &status.conditions, wanted, counts, now));
    }
    for (name, accepted) in &all.remedies {
        let Some(object) = view.remedies.get(*name) else { continue };
        let status = object.status.clone().unwrap_or_default();
        let nodes = vec![Count { field: "nodes", said: status.nodes, there: accepted.nodes }];
        words.extend(word(object, &status.conditions, vec![Wanted::accepted(&accepted.standing)], nodes, now));
    }
    if let Some(object) = &view.policy {
        let problem = policy(Uid::default(), &object.spec).err().map(|why| why.to_string());
        let known = object.status.clone().unwrap_or_default().conditions;
        let accepted = Wanted::accepted(&Standing::of(problem));
        words.extend(word(object, &known, vec![accepted, ledger_ready(object), observing(observes)], vec![], now));
    }
    words
}

fn ledger_ready(policy: &FencePolicy) -> Wanted {
    let (holds, reason, message) = match ledger_of(policy) {
        Some(_) => (true, "LedgerBuilt", ""),
        None => {
            (false, "LedgerMissing", "nothing is admitted until the ledger is built from the NodeFences that are there")
        }
    };
    Wanted { type_: LEDGER_READY, status: truth(holds), reason, message: message.to_owned() }
}

fn observing(observes: bool) -> Wanted {
    let (reason, message) = if observes {
        ("Watching", "")
    } else {
        ("Settling", "this replica has not watched for long enough, or was blind a moment ago: nothing is admitted yet")
    };
    Wanted { type_: OBSERVING, status: truth(observes), reason, message: message.to_owned() }
}

/// What a template says of its devices, and of how many nodes; nothing if nobody knows more than it says already.
fn devices_healthy(
    template: &FenceTemplate,
    said: &FenceTemplateStatus,
    devices: &Words,
) -> (Option<Wanted>, Vec<Count>) {
    let wanted = |status, reason, message: String| {
        Some(Wanted { type_: DEVICES_HEALTHY, status, reason, message: message.chars().take(LONGEST).collect() })
    };
    let unknown = |reason, message: &str| wanted(Truth::Unknown, reason, message.to_owned());
    let name = template.metadata.name.as_deref().unwrap_or_default();
    let health = match How::of(&template.spec) {
        How::NoDevice => return (None, vec![]),
        How::OwnPod => {
            let why = "not checked: it is a pod of your own, and nobody but you knows whether running it is harmless";
            return (unknown("OwnPod", why), counts(said, 0, 0));
        }
        How::NotWanted => {
            return (unknown("NotWanted", "not checked: checkInterval is 0s"), counts(said, 0, 0));
        }
        How::Asked if devices.version == 0 => return (None, vec![]),
        How::Asked => devices.health.get(name),
    };
    match health {
        None => (unknown("NotUsed", "no node is fenced by it, so there is nothing to check"), counts(said, 0, 0)),
        Some(Health::Pending { unasked }) => {
            // What the leader before found out stands until we know better, unless it was about another spec.
            let same = |known: &Condition| {
                known.type_ == DEVICES_HEALTHY
                    && known.status != Truth::Unknown
                    && known.observed_generation == template.metadata.generation
            };
            if said.conditions.iter().any(same) {
                return (None, vec![]);
            }
            let unasked = unasked.as_ref().map(|which| format!("; {which}")).unwrap_or_default();
            (unknown("NotCheckedYet", &format!("not every device has been checked yet{unasked}")), vec![])
        }
        Some(Health::Healthy { nodes }) => (wanted(Truth::True, "AllGood", String::new()), counts(said, *nodes, 0)),
        Some(Health::Failing { checked, failing, reason, message }) => {
            (wanted(Truth::False, *reason, message.clone()), counts(said, *checked, *failing))
        }
    }
}

fn counts(said: &FenceTemplateStatus, checked: u32, failing: u32) -> Vec<Count> {
    vec![
        Count { field: "checked", said: said.checked, there: checked },
        Count { field: "failing", said: said.failing, there: failing },
    ]
}

/// A number in the status of an object: what it says, and what it should.
struct Count {
    field: &'static str,
    said: u32,
    there: u32,
}

const fn truth(holds: bool) -> Truth {
    if holds { Truth::True } else { Truth::False }
}

/// One condition as it should be.
struct Wanted {
    type_: &'static str,
    status: Truth,
    reason: &'static str,
    message: String,
}

impl Wanted {
    fn accepted(standing: &Standing) -> Self {
        let (holds, reason, message) = match standing {
            Standing::Usable => (true, ACCEPTED, ""),
            Standing::NotUsable(problem) => (false, NOT_USABLE, problem.as_str()),
            Standing::InPart(parts) => (false, NOT_CARRIED_OUT, parts.as_str()),
        };
        Self { type_: ACCEPTED, status: truth(holds), reason, message: message.chars().take(LONGEST).collect() }
    }

    /// The condition, which keeps its time for as long as its status stays.
    fn beside(self, known: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
        let before = known.iter().find(|known| known.type_ == self.type_ && known.status == self.status);
        Condition {
            type_: self.type_.to_owned(),
            status: self.status,
            observed_generation: generation,
            last_transition_time: before.map_or(now, |known| known.last_transition_time),
            reason: self.reason.to_owned(),
            message: self.message,
        }
    }
}

/// What is to be said of one object, if it does not say so already.
fn word<K: kube::Resource<DynamicType = ()>>(
    object: &K,
    known: &[Condition],
    wanted: Vec<Wanted>,
    counts: Vec<Count>,
    now: Timestamp,
) -> Option<Word> {
    let generation = object.meta().generation;
    let next: Vec<Condition> = wanted.into_iter().map(|wanted| wanted.beside(known, generation, now)).collect();
    let counted = counts.iter().all(|count| count.said == count.there);
    if counted && next.iter().all(|next| known.contains(next)) {
        return None;
    }
    let told = next.iter().find_map(|next| told(known, next));
    let others = known.iter().filter(|one| next.iter().all(|next| next.type_ != one.type_)).cloned();
    let all: Vec<Condition> = others.chain(next.iter().cloned()).collect();
    let mut status = json!({ "observedGeneration": generation, "conditions": all });
    for count in counts {
        status[count.field] = count.there.into();
    }
    Some(Word { about: object.object_ref(&()), status, told })
}

/// What people are told of a condition that is new or says something else.
fn told(known: &[Condition], next: &Condition) -> Option<Told> {
    let before = known.iter().find(|known| known.type_ == next.type_);
    let refused = |condition: &Condition| condition.type_ == ACCEPTED && condition.status == Truth::False;
    match (before.filter(|before| refused(before)), refused(next)) {
        (Some(before), true) if before.message == next.message => None,
        (_, true) => Some((Tone::Warning, next.reason.clone(), next.message.clone())),
        (Some(_), false) => Some((Tone::Normal, next.reason.clone(), "it can be used as it stands".to_owned())),
        (None, false) => None,
    }
}

/// What is said of an object that cannot be understood; its own conditions cannot be read either.
fn not_understood(bad: &NotUnderstood, now: Timestamp) -> Option<Word> {
    if !matches!(bad.kind.as_str(), "FenceConfig" | "FenceTemplate" | "NodeRemedy" | "FencePolicy") {
        return None;
    }
    let about = ObjectReference {
        kind: Some(bad.kind.clone()),
        name: Some(bad.name.clone()),
        uid: Some(bad.uid.clone()),
        ..ObjectReference::default()
    };
    let condition = Condition {
        type_: ACCEPTED.to_owned(),
        status: Truth::False,
        observed_generation: None,
        last_transition_time: now,
        reason: NOT_UNDERSTOOD.to_owned(),
        message: bad.why.chars().take(LONGEST).collect(),
    };
    Some(Word { about, status: json!({ "conditions": [condition] }), told: None })
}

/// Writes what is to be said. What cannot be written is tried again later.
pub(crate) async fn write(context: Context, hold: Hold, words: Vec<Word>) -> News {
    let mut all = true;
    for word in words {
        let said = match hold.check() {
            Ok(()) => say(&context, &word).await.map_err(|why| brief(&why)),
            Err(late) => Err(late.0),
        };
        match (said, word.told) {
            (Ok(()), Some((tone, reason, message))) => {
                let (news, _) = tokio::sync::mpsc::unbounded_channel();
                events::tell(&context, &news, word.about, tone, &reason, &message).await;
            }
            (Ok(()), None) => {}
            (Err(why), _) => {
                all = false;
                // Tried again in a moment, and again: what lasts is a right that is missing, and that is said elsewhere.
                tracing::debug!(kind = word.about.kind, name = word.about.name, why, "its status is written later");
            }
        }
    }
    News::Accepted { all }
}

/// By its UID: another object of the same name is not what was looked at. The answer is not read: what cannot be understood
/// could not be.
async fn say(context: &Context, word: &Word) -> kube::Result<()> {
    let resource = match word.about.kind.as_deref() {
        Some("FenceConfig") => ApiResource::erase::<FenceConfig>(&()),
        Some("FenceTemplate") => ApiResource::erase::<FenceTemplate>(&()),
        Some("NodeRemedy") => ApiResource::erase::<NodeRemedy>(&()),
        _ => ApiResource::erase::<FencePolicy>(&()),
    };
    let objects: Api<DynamicObject> = Api::all_with(context.client.clone(), &resource);
    let patch = Patch::Merge(json!({ "metadata": { "uid": word.about.uid }, "status": word.status }));
    objects.patch_status(word.about.name.as_deref().unwrap_or_default(), &PatchParams::default(), &patch).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(standing: &Standing) -> Condition {
        Wanted::accepted(standing).beside(&[], Some(1), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn what_is_carried_out_only_in_part_is_not_called_accepted_and_people_are_told_which() {
        let parts = condition(&Standing::InPart("gone.second: `repair` is not tried".to_owned()));
        assert_eq!((parts.status, parts.reason.as_str()), (Truth::False, "NotCarriedOut"));
        assert_eq!(parts.message, "gone.second: `repair` is not tried");
        let told = told(&[], &parts).unwrap();
        assert_eq!(told, (Tone::Warning, "NotCarriedOut".to_owned(), parts.message.clone()));
    }

    #[test]
    fn people_are_told_once_and_again_when_it_is_put_right() {
        let wrong = condition(&Standing::NotUsable("no template".to_owned()));
        let right = condition(&Standing::Usable);
        assert_eq!(told(std::slice::from_ref(&wrong), &wrong), None);
        let better = told(&[wrong], &right).unwrap();
        assert_eq!((better.0, better.1.as_str()), (Tone::Normal, "Accepted"));
        assert_eq!(told(&[], &right), None);
    }
}
