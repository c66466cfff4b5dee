//! Stage / world: the verbs of a story. Each is done to the embedded cluster, and told.

use std::fmt::Display;
use std::time::Duration;

use palisade_scenarios::world::{Agent, Bmc, Broken, Kind, Link, Look, Power, Switched, Told, World};
use serde_json::Value;

use super::{ALONE_WATCH, Room, Stage, Wait};
use crate::demo::story::Beat;

impl Look for Stage {
    fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        self.world.get(kind, name)
    }

    fn list(&self, kind: Kind) -> Vec<Value> {
        self.world.list(kind)
    }

    fn power_of(&self, node: &str) -> Power {
        self.world.power_of(node)
    }

    fn writers_of(&self, claim: &str) -> Vec<String> {
        self.world.writers_of(claim)
    }

    fn commands_to(&self, node: &str) -> Vec<Switched> {
        self.world.commands_to(node)
    }

    fn boots_of(&self, node: &str) -> u32 {
        self.world.boots_of(node)
    }

    fn elapsed(&self) -> Duration {
        self.world.elapsed()
    }
}

impl World for Stage {
    async fn power_off(&mut self, node: &str) -> Told {
        self.strike(format!("{node} loses its power; its BMC has its own and stays on")).await?;
        self.world.power_off(node).await
    }

    async fn cut_feed(&mut self, node: &str) -> Told {
        self.strike(format!("{node} loses its feed, and its BMC with it")).await?;
        self.world.cut_feed(node).await
    }

    async fn restore_feed(&mut self, node: &str) -> Told {
        self.strike(format!("the feed of {node} is back, and the machine starts by itself")).await?;
        self.world.restore_feed(node).await
    }

    async fn outside_on(&mut self, node: &str) -> Told {
        self.strike(format!("somebody presses the button of {node}")).await?;
        self.world.outside_on(node).await
    }

    async fn hibernate(&mut self, node: &str) -> Told {
        self.strike(format!("{node} writes its memory to disk and switches itself off")).await?;
        self.world.hibernate(node).await
    }

    async fn cut(&mut self, node: &str, link: Link) -> Told {
        self.strike(format!("{node} is cut off from {}", far_end(link))).await?;
        self.world.cut(node, link).await
    }

    async fn heal(&mut self, node: &str, link: Link) -> Told {
        self.strike(format!("{node} reaches {} again", far_end(link))).await?;
        self.world.heal(node, link).await
    }

    async fn kubelet_hang(&mut self, node: &str) -> Told {
        self.strike(format!("the kubelet of {node} hangs; its pods go on")).await?;
        self.world.kubelet_hang(node).await
    }

    async fn kubelet_resume(&mut self, node: &str) -> Told {
        self.strike(format!("the kubelet of {node} goes on")).await?;
        self.world.kubelet_resume(node).await
    }

    async fn kubelet_restart(&mut self, node: &str) -> Told {
        self.strike(format!("the kubelet of {node} starts anew")).await?;
        self.world.kubelet_restart(node).await
    }

    async fn bmc(&mut self, node: &str, behaves: Bmc) -> Told {
        self.strike(format!("the BMC of {node} {} from now on", does(behaves))).await?;
        self.world.bmc(node, behaves).await
    }

    async fn agent(&mut self, behaves: Agent) -> Told {
        self.strike(format!("fence agents {} from now on", all_of_them(behaves))).await?;
        self.world.agent(behaves).await
    }

    async fn api_down(&mut self) -> Told {
        self.strike("the API server is gone, for everybody".to_owned()).await?;
        self.world.api_down().await
    }

    async fn api_up(&mut self) -> Told {
        self.strike("the API server is back".to_owned()).await?;
        self.world.api_up().await
    }

    async fn operator_start(&mut self, name: &str) -> Told {
        if self.alone {
            return Ok(());
        }
        self.aside(format_args!("the operator {name} starts"))?;
        self.world.operator_start(name).await
    }

    async fn operator_start_on(&mut self, name: &str, node: &str) -> Told {
        if self.alone {
            return Ok(());
        }
        self.aside(format_args!("the operator {name} starts, on {node}"))?;
        self.world.operator_start_on(name, node).await
    }

    async fn operator_crash(&mut self, name: &str) -> Told {
        self.aside(format_args!("the operator {name} crashes"))?;
        self.world.operator_crash(name).await
    }

    async fn operator_stop(&mut self, name: &str) -> Told {
        self.aside(format_args!("the operator {name} is asked to end"))?;
        self.world.operator_stop(name).await
    }

    async fn create(&mut self, kind: Kind, object: Value) -> Told {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let words = format!("somebody creates the {} {name}", kind.words().1);
        // Who asks for a fence is where such a story begins; everything else that is made before belongs to the setting.
        if kind == Kind::Request {
            self.strike(words).await?;
        } else {
            self.aside(words)?;
        }
        self.world.create(kind, object).await
    }

    async fn patch(&mut self, kind: Kind, name: &str, patch: Value) -> Told {
        self.aside(format_args!("somebody changes the {} {name}: {patch}", kind.words().1))?;
        self.world.patch(kind, name, patch).await
    }

    async fn delete(&mut self, kind: Kind, name: &str) -> Told {
        self.aside(format_args!("somebody deletes the {} {name}", kind.words().1))?;
        self.world.delete(kind, name).await
    }

    async fn delete_alone(&mut self, kind: Kind, name: &str) -> Told {
        self.aside(format_args!("somebody deletes the {} {name}, and leaves what it has made", kind.words().1))?;
        self.world.delete_alone(kind, name).await
    }

    async fn forbid_deletion(&mut self, kind: Kind, name: &str, forbidden: bool) -> Told {
        let rule = if forbidden { "forbids" } else { "no longer forbids" };
        self.aside(format_args!("an admission rule {rule} to delete the {} {name}", kind.words().1))?;
        self.world.forbid_deletion(kind, name, forbidden).await
    }

    async fn daemon_set(&mut self, name: &str) -> Told {
        self.aside(format_args!("somebody creates the DaemonSet {name}"))?;
        self.world.daemon_set(name).await
    }

    async fn settle(&mut self) {
        // As long as the embedded world lets a new operator watch.
        self.run_for(90).await;
    }

    async fn run_for(&mut self, seconds: u64) {
        // A story cannot hear of trouble here; its next question ends it.
        let _ = self.pass(Wait::For, seconds, "time passes", |_| false).await;
    }

    async fn run_until(&mut self, seconds: u64, what: &str, so: impl FnMut(&dyn Look) -> bool) -> Told<Duration> {
        self.leave_it_to_kubernetes().await?;
        let took = self.pass(Wait::Until, seconds, what, so).await?;
        took.ok_or_else(|| Broken(format!("not within {seconds} s: {what}")))
    }

    async fn hold_for(&mut self, seconds: u64, what: &str, mut so: impl FnMut(&dyn Look) -> bool) -> Told {
        self.leave_it_to_kubernetes().await?;
        match self.pass(Wait::Hold, seconds, what, |world| !so(world)).await? {
            None => Ok(()),
            Some(after) => Err(Broken(format!("no longer so after {after:.1?}: {what}"))),
        }
    }

    fn refused_deletions(&self) -> usize {
        self.world.refused_deletions()
    }

    fn two_writers(&self) -> Vec<String> {
        self.world.two_writers()
    }
}

impl Stage {
    /// Tells a blow, or its end. Before the first one people take their seats.
    async fn strike(&mut self, words: String) -> Told {
        if !self.open {
            let opened = self.raise().await;
            self.heard(opened)?;
        }
        self.aside(words)
    }

    /// Tells what people do. What they did before anybody looked on is part of the setting.
    fn aside(&mut self, words: impl Display) -> Told {
        if !self.open {
            return Ok(());
        }
        let told = self.tell(&Beat::new(self.elapsed(), Room::World, words.to_string()));
        self.heard(told.map_err(Into::into))
    }

    /// Lets time pass: fast before people look on, and at their pace afterwards.
    async fn pass(
        &mut self,
        wait: Wait,
        seconds: u64,
        what: &str,
        so: impl FnMut(&dyn Look) -> bool,
    ) -> Told<Option<Duration>> {
        let limit = Duration::from_secs(seconds);
        if !self.open {
            return Ok(self.world.look_until(limit, so).await);
        }
        if self.trouble.is_some() {
            return Err(untold());
        }
        let watched = self.watch(wait, limit, what, so).await;
        self.heard(watched)
    }

    /// Without Palisade nothing comes that a story waits for after the blow. It is watched for a while, and ends there.
    async fn leave_it_to_kubernetes(&mut self) -> Told {
        if !self.alone || !self.open {
            return Ok(());
        }
        self.pass(Wait::Alone, ALONE_WATCH.as_secs(), "Kubernetes alone", |_| false).await?;
        Err(Broken("nobody but Kubernetes was there".to_owned()))
    }

    /// Keeps what went wrong with the telling.
    fn heard<T>(&mut self, told: anyhow::Result<T>) -> Told<T> {
        told.map_err(|why| {
            self.trouble = Some(why);
            untold()
        })
    }
}

fn untold() -> Broken {
    Broken("it could not be told".to_owned())
}

fn far_end(link: Link) -> &'static str {
    match link {
        Link::Api => "the API server",
        Link::Storage => "its storage",
        Link::Peers => "its peers",
        Link::Devices => "the BMCs",
    }
}

fn all_of_them(behaves: Agent) -> String {
    match behaves {
        Agent::Honest => "do what they say".to_owned(),
        Agent::SaysSuccess => "say that it was done, and do nothing".to_owned(),
        Agent::LiesWholly => "say that it was done, do nothing, and read off whatever is true".to_owned(),
        Agent::FailsAfterSuccess => "do it, and say that they failed".to_owned(),
        Agent::ErrorTextExitZero => "do nothing, say so, and exit as if all were well".to_owned(),
        Agent::Hangs => "never come to an end".to_owned(),
        Agent::KilledBySignal => "do it, and are killed before they can say so".to_owned(),
        Agent::Slow(seconds) => format!("take {seconds} s more for each call"),
        Agent::FlapsWithCycle => "meet somebody else's power cycle".to_owned(),
        Agent::WrongReport => "do it, and leave a report that nobody can read".to_owned(),
    }
}

fn does(behaves: Bmc) -> String {
    match behaves {
        Bmc::Honest => "does what it says".to_owned(),
        Bmc::Slow(seconds) => format!("takes {seconds} s for each answer"),
        Bmc::Silent => "takes every request and says nothing".to_owned(),
        Bmc::Unreachable => "is out of reach".to_owned(),
        Bmc::Refuses => "refuses every command".to_owned(),
        Bmc::AcceptsOnly => "says yes to every command and does nothing".to_owned(),
        Bmc::SaysOff => "says off, whatever is true,".to_owned(),
        Bmc::Late(seconds) => format!("does everything {seconds} s late"),
        Bmc::LosesReply => "does what it says, and its answer gets lost".to_owned(),
        Bmc::ShowsFor(millis) => format!("does nothing, and shows off for {millis} ms"),
        Bmc::Flaps(millis) => format!("switches off, and the machine comes back after {millis} ms"),
    }
}
