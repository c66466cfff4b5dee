//! Run: one loop that hears what the watches see and starts what is due. All of it is one future: whoever drops it ends
//! everything at the very await where it stands.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::agenda::{Agenda, Case};
use crate::driver::{Driver, NotMet};
use crate::pass::{Ended, Pass, release_volume};
use crate::patches::Way;
use crate::view::{Concerned, View};
use crate::watch::{self, News};

/// The pause before a driver that did not answer is asked again who it is.
const PAUSE: Duration = Duration::from_secs(1);
/// How long what is under way may take to end, once we are told to stop. The rest is found by whoever comes next.
const FAREWELL: Duration = Duration::from_secs(5);

/// Why there is nothing to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The driver publishes nothing.
    #[error(
        "driver {0} cannot publish volumes: say `attachRequired: false` in its CSIDriver, and no attacher is needed"
    )]
    CannotPublish(String),
}

/// Serves the attachments of the driver behind this socket until it is told to stop.
pub async fn run(client: kube::Client, socket: &Path, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
    tokio::pin!(stop);
    let driver = tokio::select! {
        biased;
        () = &mut stop => return Ok(()),
        driver = meet(socket) => driver?,
    };
    tracing::info!(driver = driver.traits.name, "attaching and detaching its volumes");
    let (tell, mut hear) = mpsc::unbounded_channel();
    let name = driver.traits.name.clone();
    let mut watches = Box::pin(watch::all(&client, &name, &tell));
    let mut desk = Desk::new(client.clone(), driver);
    loop {
        desk.start_due();
        let due = desk.agenda.first();
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = desk.under_way.next(), if !desk.under_way.is_empty() => desk.ended(ended),
            Some(news) = hear.recv() => desk.hear(news),
            () = &mut watches => break,
            () = until(due) => {}
        }
    }
    desk.finish().await;
    Ok(())
}

/// Waits for the driver; a sidecar often starts before it.
async fn meet(socket: &Path) -> Result<Driver, Error> {
    let mut said = String::new();
    loop {
        let why = match Driver::meet(socket).await {
            Ok(driver) => return Ok(driver),
            Err(NotMet::CannotPublish(name)) => return Err(Error::CannotPublish(name)),
            Err(why) => why.to_string(),
        };
        // Once per change, not once per second.
        if why != said {
            tracing::warn!(socket = %socket.display(), why, "waiting for the CSI driver");
            said = why;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// What came of a case.
enum Outcome {
    Attachment(Box<VolumeAttachment>, Ended),
    Volume(Result<(), String>),
}

/// What is known, what is due, and what is under way.
struct Desk {
    client: kube::Client,
    driver: Driver,
    view: View,
    agenda: Agenda,
    under_way: FuturesUnordered<BoxFuture<'static, (Case, Outcome)>>,
}

impl Desk {
    fn new(client: kube::Client, driver: Driver) -> Self {
        let (view, agenda) = (View::default(), Agenda::default());
        Self { client, driver, view, agenda, under_way: FuturesUnordered::new() }
    }

    fn hear(&mut self, news: News) {
        let concerned = match news {
            News::Attachments(change) => self.view.attachments(change),
            News::Volumes(change) => self.view.volumes(change),
            News::Nodes(change) => self.view.nodes(change),
        };
        self.wake(concerned);
    }

    fn wake(&mut self, concerned: Concerned) {
        let now = Instant::now();
        for name in concerned.gone {
            self.agenda.forget(&Case::Attachment(name));
        }
        for name in concerned.changed {
            self.agenda.wake_idle(&Case::Attachment(name), now);
        }
        for name in concerned.attachments {
            self.agenda.wake(&Case::Attachment(name), now);
        }
        for name in concerned.volumes {
            if self.view.volumes.get(&name).is_some_and(crate::view::goes) {
                self.agenda.wake(&Case::Volume(name), now);
            } else {
                self.agenda.forget(&Case::Volume(name));
            }
        }
    }

    /// Starts everything that is due and has room.
    fn start_due(&mut self) {
        while let Some(case) = self.agenda.take(Instant::now()) {
            let work: BoxFuture<'static, (Case, Outcome)> = match &case {
                Case::Attachment(name) => {
                    let Some(attachment) = self.view.attachments.get(name) else {
                        self.agenda.done(&case, Instant::now());
                        continue;
                    };
                    let carried = Box::pin(self.pass(attachment.clone()).carry());
                    Box::pin(async move {
                        let (attachment, ended) = carried.await;
                        (case, Outcome::Attachment(Box::new(attachment), ended))
                    })
                }
                Case::Volume(name) => {
                    let release =
                        release_volume(self.client.clone(), name.clone(), self.driver.traits.finalizer.clone());
                    Box::pin(async move { (case, Outcome::Volume(release.await)) })
                }
            };
            self.under_way.push(work);
        }
    }

    fn pass(&self, attachment: VolumeAttachment) -> Pass {
        let volume = attachment.spec.source.persistent_volume_name.as_ref();
        let volume = volume.and_then(|name| self.view.volumes.get(name)).cloned();
        let node_id = self.view.node_ids.get(&attachment.spec.node_name).cloned();
        Pass::new(self.client.clone(), self.driver.clone(), attachment, volume, node_id)
    }

    fn ended(&mut self, (case, outcome): (Case, Outcome)) {
        let now = Instant::now();
        match outcome {
            Outcome::Attachment(attachment, ended) => self.attachment_ended(&case, &attachment, ended),
            Outcome::Volume(Ok(())) => self.agenda.done(&case, now),
            Outcome::Volume(Err(why)) => {
                let wait = self.agenda.failed(&case, now);
                tracing::warn!(?case, why, "not let go; next try in {wait:?}");
            }
        }
    }

    fn attachment_ended(&mut self, case: &Case, attachment: &VolumeAttachment, ended: Ended) {
        let now = Instant::now();
        // What was seen meanwhile and is not what we ended with.
        if self.view.knows_better(attachment) || matches!(ended, Ended::Another) {
            self.agenda.wake(case, now);
        }
        // Once it is gone from the view it stays gone: the watch has the last word.
        if self.view.attachments.contains_key(&attachment.name_any()) {
            self.view.put(attachment);
        }
        match ended {
            Ended::Settled | Ended::Gone | Ended::Another => self.agenda.done(case, now),
            Ended::Failed(way, why) => {
                let wait = self.agenda.failed(case, now);
                let (name, node) = (attachment.name_any(), &attachment.spec.node_name);
                let volume = attachment.spec.source.persistent_volume_name.as_deref().unwrap_or("inline");
                let what = match way {
                    Way::Attach => "not attached",
                    Way::Detach => "not detached",
                };
                tracing::warn!(attachment = name, volume, node, why, "{what}; next try in {wait:?}");
            }
        }
    }

    /// Lets what is under way end, as far as it does so in time.
    async fn finish(mut self) {
        let all = async { while self.under_way.next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, all).await.is_err() {
            tracing::info!("not everything ended in time; whoever comes next looks at it anew");
        }
    }
}
