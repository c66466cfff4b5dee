//! Pod garbage collection: removes pods that no kubelet will ever finish.
//!
//! Promise: by force, and only these: pods of nodes that are gone for a while, terminating pods that never got a node,
//! terminating pods of nodes that are not ready and bear the out-of-service taint.
//! Left out: the limit on finished pods (12,500 upstream).

use std::{collections::BTreeMap, time::Duration};

use super::mark_disrupted;
use crate::{
    api::{Change, DeleteOptions, Key, Kind, metadata},
    nature::{Actor, Ctx, Hears, fetch},
    objects::{has_taint, is_ready},
    truth::Name,
};

/// `gcCheckPeriod`.
const PERIOD: Duration = Duration::from_secs(20);
/// How long a node has to be gone before its pods are.
const QUARANTINE: Duration = Duration::from_secs(40);

pub(crate) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The controller.
#[derive(Default)]
pub(crate) struct PodGc {
    look_at: Duration,
    missing: BTreeMap<Name, Duration>,
}

impl PodGc {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[]);

    fn collect(&mut self, ctx: &Ctx<'_>) {
        let mut missing = BTreeMap::new();
        for name in ctx.index.nodes_with_pods() {
            let pods = || fetch(ctx.api, ctx.index.pods_on(name)).into_iter();
            let marked = || pods().filter(|(_, pod)| metadata::is_deleting(pod));
            if name.is_empty() {
                marked().for_each(|(key, _)| remove(ctx, &key));
                continue;
            }
            match ctx.api.get(&Key::cluster(Kind::NODE, name)) {
                Some(node) if !is_ready(&node) && has_taint(&node, OUT_OF_SERVICE) => {
                    marked().for_each(|(key, _)| remove(ctx, &key));
                }
                Some(_) => {}
                None => {
                    let since = self.missing.get(name).copied().unwrap_or(ctx.now);
                    missing.insert(Name::from(name), since);
                    if since + QUARANTINE <= ctx.now {
                        for (key, _) in pods() {
                            mark_disrupted(ctx, &key, "DeletionByPodGC", "PodGC: node no longer exists", true);
                            remove(ctx, &key);
                        }
                    }
                }
            }
        }
        self.missing = missing;
    }
}

impl Actor for PodGc {
    fn notice(&mut self, _: &Change) -> bool {
        false
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        if self.look_at <= ctx.now {
            self.collect(ctx);
            self.look_at = ctx.now + PERIOD;
        }
        Some(self.look_at.saturating_sub(ctx.now))
    }
}

fn remove(ctx: &Ctx<'_>, key: &Key) {
    drop(ctx.api.update(key, |pod| {
        if !crate::objects::is_finished(pod) {
            pod["status"]["phase"] = "Failed".into();
        }
    }));
    // Gone already: all the better.
    drop(ctx.api.delete(key, &DeleteOptions { grace: Some(0), ..DeleteOptions::default() }));
}
