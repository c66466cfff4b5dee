//! Leader: one replica acts at a time, as far as a lease can promise that.
//!
//! A lease is timed from when *this* process last saw it change, never by the stamps in it: clocks of other machines count for
//! nothing. The holder stops acting well before anybody else may begin ([`HOLD`] is shorter than [`PATIENCE`]).
//! Never: takes the lease for a fence. Two leaders can meet all the same; what each does is bound to UIDs and versions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use palisade_devices::Late;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::context::Context;
use crate::effects::conflict;
use crate::news::News;
use crate::said::{AWAY, Said, brief, theme};

/// The name of the lease.
pub(crate) const LEASE: &str = "palisade-leader";
/// How often it is renewed, or looked at.
const LOOK: Duration = Duration::from_secs(3);
/// How long the holder may act after it began a renewal that went through.
const HOLD: Duration = Duration::from_secs(10);
/// How long others wait after they last saw it change.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(5);

/// Whether we lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// From now on.
    Leads,
    /// No longer.
    Follows,
}

/// Until when we may act; shared with everything that is about to send something.
#[derive(Clone, Default)]
pub(crate) struct Hold {
    until: Arc<Mutex<Option<Instant>>>,
}

impl Hold {
    /// Whether we may act now.
    pub(crate) fn stands(&self) -> bool {
        self.until.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| Instant::now() < until)
    }

    /// The same, in words.
    pub(crate) fn check(&self) -> Result<(), Late> {
        if self.stands() {
            return Ok(());
        }
        Err(Late("this replica no longer leads, so it sends nothing".to_owned()))
    }

    fn set(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// What this process last saw of the lease, and when.
struct Sighting {
    holder: String,
    renewed: Option<MicroTime>,
    at: Instant,
}

/// Takes part in the election for as long as it runs.
pub(crate) async fn run(context: Context, hold: Hold, news: UnboundedSender<News>) {
    let mut candidate = Candidate {
        leases: Api::namespaced(context.client.clone(), &context.namespace),
        context,
        hold,
        seen: None,
        ours: None,
        leads: false,
    };
    let mut broken = Said::default();
    loop {
        let before = candidate.leads;
        let outcome = tokio::time::timeout(REQUEST, candidate.look()).await;
        match outcome {
            Ok(Ok(())) => {
                if broken.is_over() {
                    tracing::info!(lease = LEASE, "the leader's lease is reached again");
                }
                let _ = news.send(News::Answered);
            }
            // Somebody else wrote it in between; that is what the version is for.
            Ok(Err(why)) if conflict(&why) => tracing::debug!(%why, "leader lease"),
            Ok(Err(why)) => say(&mut broken, theme(&why).as_deref(), &brief(&why)),
            Err(_) => say(&mut broken, Some(AWAY), "no answer in time"),
        }
        candidate.leads &= candidate.hold.stands();
        if candidate.leads != before {
            let term = if candidate.leads { Term::Leads } else { Term::Follows };
            if news.send(News::Leads(term)).is_err() {
                return;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn say(broken: &mut Said, theme: Option<&str>, why: &str) {
    if theme.is_some_and(|theme| broken.is_news(theme)) {
        tracing::warn!(
            lease = LEASE,
            why,
            "the leader's lease cannot be reached; without it this replica does nothing"
        );
    }
}

struct Candidate {
    leases: Api<Lease>,
    context: Context,
    hold: Hold,
    seen: Option<Sighting>,
    /// The lease as we last wrote it, for as long as nobody else has.
    ours: Option<Lease>,
    leads: bool,
}

impl Candidate {
    /// One look: renew, wait, or take over.
    async fn look(&mut self) -> kube::Result<()> {
        let began = Instant::now();
        // Whoever holds it renews what it wrote last: if anybody wrote in between, that is refused by its version, and the next
        // look reads first.
        let lease = match self.ours.take() {
            Some(ours) => Some(ours),
            None => self.leases.get_opt(LEASE).await?,
        };
        let Some(lease) = lease else {
            let lease = Lease {
                metadata: ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() },
                spec: Some(self.spec(None)),
            };
            self.ours = Some(self.leases.create(&PostParams::default(), &lease).await?);
            self.leads(began);
            return Ok(());
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        if holder == self.context.identity || holder.is_empty() || self.is_stale(&holder, &spec, began) {
            let taken = Lease { spec: Some(self.spec(Some(&spec))), ..lease };
            // By the version that was read: whoever else took it in between has won.
            self.ours = Some(self.leases.replace(LEASE, &PostParams::default(), &taken).await?);
            self.leads(began);
        } else {
            self.leads = false;
            self.hold.set(None);
        }
        Ok(())
    }

    /// Whether nobody has renewed it for so long that its holder has stopped acting.
    fn is_stale(&mut self, holder: &str, spec: &LeaseSpec, now: Instant) -> bool {
        let same = |seen: &&Sighting| seen.holder == holder && seen.renewed == spec.renew_time;
        if let Some(seen) = self.seen.as_ref().filter(same) {
            return now.duration_since(seen.at) >= PATIENCE;
        }
        self.seen = Some(Sighting { holder: holder.to_owned(), renewed: spec.renew_time.clone(), at: now });
        false
    }

    fn leads(&mut self, began: Instant) {
        self.leads = true;
        self.hold.set(Some(began + HOLD));
    }

    fn spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(self.wall());
        let ours = before.is_some_and(|spec| spec.holder_identity.as_deref() == Some(&self.context.identity));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.context.identity.clone()),
            lease_duration_seconds: i32::try_from(PATIENCE.as_secs()).ok(),
            acquire_time: before.filter(|_| ours).and_then(|spec| spec.acquire_time.clone()).or(Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if ours { transitions } else { transitions.saturating_add(1) }),
            ..LeaseSpec::default()
        }
    }

    fn wall(&self) -> Timestamp {
        self.context.clock.wall()
    }
}

/// Gives the lease up, so that the next replica need not wait.
pub(crate) async fn resign(context: &Context, hold: &Hold) {
    if !hold.stands() {
        return;
    }
    hold.set(None);
    let leases: Api<Lease> = Api::namespaced(context.client.clone(), &context.namespace);
    let Ok(Some(mut lease)) = leases.get_opt(LEASE).await else { return };
    let Some(spec) = lease.spec.as_mut().filter(|spec| spec.holder_identity.as_deref() == Some(&context.identity))
    else {
        return;
    };
    spec.holder_identity = Some(String::new());
    if let Err(why) = leases.replace(LEASE, &PostParams::default(), &lease).await {
        tracing::debug!(%why, "the leader's lease was not given up; it runs out by itself");
    }
}
