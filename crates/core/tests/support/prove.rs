//! Golden cases of proof: what reads amount to, what is a sign of life, how each class is made and ended, what it covers.

use palisade_core::prove::{
    Class, Coverage, Judged, LifeSigns, PlugRead, Seen, cover, dumping, fenced_by_storage, judge_for, person_said,
    pod_said, sign_of_life, unpublished,
};
use palisade_core::reason::prove::{LifeSign, ProofEnd};
use palisade_core::time::{Span, Tick};

use crate::golden::{Fact, Room};
use crate::world::{self, World, one_of, samples, show};

pub fn rooms() -> Vec<Room> {
    let room = |files, run, must_show: Vec<String>| Room { files, run, must_show };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut classes: Vec<String> = Class::ALL.iter().map(ToString::to_string).collect();
    classes.extend(ProofEnd::NAMES.iter().map(|name| format!("ended={name}")));
    classes.extend(LifeSign::NAMES.iter().map(|name| format!("sign={name}")));
    vec![
        room("prove/readback", readback, words(&["Off", "NotSteady", "Contradicted", "On", "Unknown"])),
        room("prove/evidence", evidence, words(&["verified", "nothing"])),
        room("prove/life", life, words(LifeSign::NAMES).into_iter().chain(words(&["silent"])).collect()),
        room("prove/classes", world::run, classes),
        room("prove/cover", covered, words(&["Node", "Volumes", "NoProof", "NotCovered", "Unbound", "UnknownVolume"])),
    ]
}

/// `wanted bmc:1 bmc:2`, `stable 2s`, `class storage` (else power), `plug bmc:1 off@0s off@2s-3s`; `off!` while the kubelet answers,
/// `off?` while nobody knows whether it does.
fn readback(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let (mut wanted, mut reads, mut stable, mut class) = (Vec::new(), Vec::new(), Span::secs(2), Class::Power);
    let plug_of = |text: &str| {
        let (method, plug) = text.split_once(':').unwrap_or((text, "1"));
        (method.into(), plug.into())
    };
    for mut fact in facts.drain(..) {
        match fact.kind.as_str() {
            "wanted" => {
                while let Ok(word) = fact.word("a plug") {
                    wanted.push(plug_of(&word));
                }
            }
            "class" => {
                let word = fact.word("the class")?;
                class = one_of(&fact, &word, world::CLASSES)?;
            }
            "stable" => stable = world::parse(&mut fact, "for how long")?,
            "plug" => {
                let (method, plug) = plug_of(&fact.word("the plug")?);
                let mut said = Vec::new();
                while let Ok(word) = fact.word("a read") {
                    said.push(word);
                }
                let samples = samples(&said.join(","), Tick::START, Span::ZERO).map_err(|why| fact.wrong(&why))?;
                reads.push(PlugRead { method, plug, samples });
            }
            _ => return Err(fact.wrong("nobody understands this kind of fact")),
        }
        fact.done()?;
    }
    Ok(vec![match judge_for(class, &reads, &wanted, stable) {
        Judged::Off => "Off".to_owned(),
        Judged::NotSteady { steady } => format!("NotSteady steady={steady}"),
        Judged::Contradicted => "Contradicted".to_owned(),
        Judged::On => "On".to_owned(),
        Judged::Unknown => "Unknown".to_owned(),
    }])
}

/// `storage stos off revokes-sessions`, `driver v1 ok`, `person jane same-life`, `kdump counts same-life silent`,
/// `pod mine looked-last silent kubelet=silent`.
fn evidence(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for mut fact in facts.drain(..) {
        let verified = match fact.kind.as_str() {
            "storage" => {
                let provider = fact.word("the provider")?.as_str().into();
                let word = fact.word("what it says")?;
                let seen = one_of(&fact, &word, &[("off", Seen::Off), ("on", Seen::On), ("unknown", Seen::Unknown)])?;
                fenced_by_storage(&provider, seen, fact.flag("revokes-sessions"))
            }
            "driver" => unpublished(&fact.word("the volume")?.as_str().into(), fact.flag("ok")),
            "person" => {
                let same_life = fact.flag("same-life");
                let who = fact.word("who").unwrap_or_default();
                person_said(&who, same_life)
            }
            "pod" => {
                let kubelet = fact.text("kubelet").unwrap_or_default();
                let heard = [("silent", Judged::Off), ("alive", Judged::Contradicted), ("unknown", Judged::Unknown)];
                let heard = heard.into_iter().find(|(word, _)| *word == kubelet).map(|(_, judged)| judged);
                let heard = heard.unwrap_or(Judged::NotSteady { steady: Span::ZERO });
                let (looked_last, silent) = (fact.flag("looked-last"), fact.flag("silent"));
                pod_said(&fact.word("the method").unwrap_or_default(), looked_last, silent, &heard)
            }
            "kdump" => dumping(fact.flag("counts"), fact.flag("same-life"), fact.flag("silent")),
            _ => return Err(fact.wrong("nobody understands this kind of fact")),
        };
        lines.push(if verified.is_some() { "verified" } else { "nothing" }.to_owned());
        fact.done()?;
    }
    Ok(lines)
}

/// `before renewed=r1 heartbeat=h1 boot=b1`, `now renewed=r2`.
fn life(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let (mut before, mut now) = (LifeSigns::default(), LifeSigns::default());
    for mut fact in facts.drain(..) {
        let signs = match fact.kind.as_str() {
            "before" => &mut before,
            "now" => &mut now,
            _ => return Err(fact.wrong("nobody understands this kind of fact")),
        };
        signs.renewed = fact.text("renewed").map(Into::into);
        signs.heartbeat = fact.text("heartbeat").map(Into::into);
        signs.boot = fact.text("boot").map(|boot| boot.as_str().into());
        fact.done()?;
    }
    Ok(vec![sign_of_life(&before, &now).map_or("silent".to_owned(), |sign| sign.name().to_owned())])
}

/// Says of each pod of the case whether, and by what, it is covered.
fn covered(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let world: World = world::read(facts)?;
    let pods = world.seen.pods.clone().unwrap_or_default();
    let say = |pod| match cover(&world.fence, pod, &world.seen) {
        Coverage::Node(basis) => format!("Node on {}", show::basis(&basis)),
        Coverage::Volumes(basis) => format!("Volumes on {}", show::basis(&basis)),
        Coverage::Missing(why) => why.brief(),
    };
    Ok(pods.iter().map(|pod| format!("{}: {}", pod.pod, say(pod))).collect())
}
