//! Pass: one attachment, carried as far as it goes.
//!
//! Expects: nobody else in this process has the attachment in hand.
//! Guarantees: what is asked of the driver was decided on the attachment as this pass wrote it or read it live. Each write
//! carries its preconditions; one that is refused leads to a look and a new decision, never to the same write again.
//! Crash at any point: the next pass reads what stands there and decides; every call to the driver can be repeated.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, Secret};
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::decide::{Facts, Intent, Next, Publish, SecretName, Unpublish, decide};
use crate::driver::{Driver, Secrets};
use crate::patches::{self, Way};
use crate::view::goes;
use crate::watch::node_id;

/// How long an answer of the API server is waited for.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// A pass has six steps at most; whoever needs more is in a race with somebody, who shall go first.
const MOST_STEPS: usize = 12;

/// What came of a pass.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The attachment is as it should be.
    Settled,
    /// It is gone.
    Gone,
    /// Another one has its name now.
    Another,
    /// It did not work, and the attachment says why.
    Failed(Way, String),
}

/// One attachment in hand.
pub(crate) struct Pass {
    client: kube::Client,
    driver: Driver,
    attachment: VolumeAttachment,
    volume: Option<PersistentVolume>,
    node_id: Option<String>,
    /// What the driver has published, and the attachment does not say yet.
    unsaid: Option<Unpublish>,
}

/// Why a step did not work.
enum Trouble {
    /// It is not as we saw it, says the API server in these words: look, and decide again.
    Changed(String),
    /// It is gone.
    Gone,
    /// Another one has its name.
    Another,
    /// Anything else.
    Failed(String),
}

type Step = Result<(), Trouble>;

impl Pass {
    /// An attachment, and what the watches saw around it.
    pub(crate) fn new(
        client: kube::Client,
        driver: Driver,
        attachment: VolumeAttachment,
        volume: Option<PersistentVolume>,
        node_id: Option<String>,
    ) -> Self {
        Self { client, driver, attachment, volume, node_id, unsaid: None }
    }

    /// Carries the attachment as far as it goes, and gives it back as it was last seen.
    pub(crate) async fn carry(mut self) -> (VolumeAttachment, Ended) {
        let ended = self.go().await;
        (self.attachment, ended)
    }

    async fn go(&mut self) -> Ended {
        let (mut live, mut refused) = (false, String::new());
        for _ in 0..MOST_STEPS {
            let next = self.decide();
            if next == Next::Rest {
                return Ended::Settled;
            }
            let mut step = if next.needs_live_facts() && !live { self.look().await } else { self.step(&next).await };
            if let Err(Trouble::Changed(why)) = step {
                refused = why;
                step = self.look().await;
            }
            match step {
                // What was written came back with the answer; and of a volume that is guarded we know no more than before.
                Ok(()) => live = live || next != Next::GuardVolume,
                Err(Trouble::Gone) => return self.lost(Ended::Gone).await,
                Err(Trouble::Another) => return self.lost(Ended::Another).await,
                Err(Trouble::Failed(why) | Trouble::Changed(why)) => return self.fail(why).await,
            }
        }
        self.fail(format!("the API server refused again and again: {refused}")).await
    }

    async fn step(&mut self, next: &Next) -> Step {
        match next {
            Next::Rest => Ok(()),
            Next::Blocked(obstacle) => Err(Trouble::Failed(obstacle.to_string())),
            Next::GuardVolume => self.guard_volume().await,
            Next::Record(intent) => self.record(intent).await,
            Next::Move(old, intent) => self.move_on(old, intent).await,
            Next::Publish(publish) => self.publish(publish).await,
            Next::Unpublish(unpublish) => self.unpublish(unpublish).await,
        }
    }

    fn decide(&self) -> Next {
        let facts =
            Facts { volume: self.volume.as_ref(), node_id: self.node_id.as_deref(), driver: &self.driver.traits };
        decide(&self.attachment, facts)
    }

    fn way(&self) -> Way {
        if self.attachment.metadata.deletion_timestamp.is_some() { Way::Detach } else { Way::Attach }
    }

    /// Reads everything live that the decision depends on.
    async fn look(&mut self) -> Step {
        let (name, node) = (self.attachment.name_any(), self.attachment.spec.node_name.clone());
        let volume = self.attachment.spec.source.persistent_volume_name.clone();
        let (attachments, nodes): (Api<VolumeAttachment>, Api<CSINode>) = (self.all(), self.all());
        let volumes: Api<PersistentVolume> = self.all();
        let volume = async {
            match &volume {
                Some(name) => in_time(volumes.get_opt(name)).await,
                None => Ok(None),
            }
        };
        let (attachment, volume, node) =
            tokio::join!(in_time(attachments.get_opt(&name)), volume, in_time(nodes.get_opt(&node)));
        let uid = self.attachment.uid();
        self.attachment = attachment?.ok_or(Trouble::Gone)?;
        if self.attachment.uid() != uid {
            return Err(Trouble::Another);
        }
        self.volume = volume?;
        self.node_id = node?.and_then(|node| node_id(&node, &self.driver.traits.name));
        Ok(())
    }

    async fn guard_volume(&mut self) -> Step {
        let Some(volume) = &self.volume else { return self.look().await };
        let patch = patches::hold(volume, &self.driver.traits.finalizer);
        let volumes: Api<PersistentVolume> = self.all();
        match json_patch(&volumes, &volume.name_any(), patch).await {
            Ok(written) => {
                self.volume = Some(written);
                Ok(())
            }
            // It is the volume that is gone, not the attachment.
            Err(Trouble::Gone) => self.look().await,
            Err(why) => Err(why),
        }
    }

    async fn record(&mut self, intent: &Intent) -> Step {
        let patch = patches::record(&self.attachment, &self.driver.traits.finalizer, intent);
        self.attachment = json_patch(&self.all(), &self.attachment.name_any(), patch).await?;
        Ok(())
    }

    async fn move_on(&mut self, old: &Unpublish, intent: &Intent) -> Step {
        let secrets = self.secrets(old.secret.as_ref()).await?;
        self.driver.unpublish(old, secrets).await.map_err(Trouble::Failed)?;
        tracing::info!(
            attachment = self.attachment.name_any(),
            volume = old.volume_handle,
            node_id = old.node_id,
            now = intent.node_id,
            "taken away from an older node ID, in case it was there"
        );
        self.record(intent).await
    }

    async fn publish(&mut self, publish: &Publish) -> Step {
        let secrets = self.secrets(publish.secret.as_ref()).await?;
        let context = self.driver.publish(publish, secrets).await.map_err(Trouble::Failed)?;
        self.unsaid = Some(publish.undone());
        let patch = patches::attached(&self.attachment, &context);
        self.attachment = self.write_status(patch).await?;
        self.unsaid = None;
        tracing::info!(
            attachment = self.attachment.name_any(),
            volume = publish.volume_handle,
            node = self.attachment.spec.node_name,
            node_id = publish.node_id,
            "attached"
        );
        Ok(())
    }

    async fn unpublish(&mut self, unpublish: &Unpublish) -> Step {
        let secrets = self.secrets(unpublish.secret.as_ref()).await?;
        self.driver.unpublish(unpublish, secrets).await.map_err(Trouble::Failed)?;
        let finalizer = &self.driver.traits.finalizer;
        // Whom somebody else still holds is at least told as detached.
        if self.attachment.finalizers().iter().any(|name| name != finalizer) {
            self.attachment = self.write_status(patches::detached(&self.attachment)).await?;
        }
        if let Some(patch) = patches::let_go(&self.attachment, finalizer) {
            self.attachment = json_patch(&self.all(), &self.attachment.name_any(), patch).await?;
        }
        self.unsaid = None;
        tracing::info!(
            attachment = self.attachment.name_any(),
            volume = unpublish.volume_handle,
            node = self.attachment.spec.node_name,
            node_id = unpublish.node_id,
            "detached"
        );
        Ok(())
    }

    /// The attachment is gone. Somebody tore it away, finalizer and all, if we have published for it: then we take that back,
    /// as nobody else would.
    async fn lost(&mut self, ended: Ended) -> Ended {
        if let Some(unsaid) = self.unsaid.take() {
            let taken = match self.secrets(unsaid.secret.as_ref()).await {
                Ok(secrets) => self.driver.unpublish(&unsaid, secrets).await,
                Err(_) => Err("its Secret could not be read".to_owned()),
            };
            let (attachment, volume, node_id) = (self.attachment.name_any(), unsaid.volume_handle, unsaid.node_id);
            match taken {
                Ok(()) => tracing::warn!(attachment, volume, node_id, "its attachment was torn away; taken back"),
                Err(why) => {
                    tracing::error!(
                        attachment,
                        volume,
                        node_id,
                        why,
                        "its attachment was torn away, and it is still published: unpublish it by hand"
                    );
                }
            }
        }
        ended
    }

    /// Writes into the attachment why it did not work. Best effort: what was not written is in the log, and tried again.
    async fn fail(&mut self, why: String) -> Ended {
        let way = self.way();
        let patch = patches::failed(&self.attachment, way, &why, now());
        if let Ok(written) = self.write_status(patch).await {
            self.attachment = written;
        }
        Ended::Failed(way, why)
    }

    async fn write_status(&self, patch: Value) -> Result<VolumeAttachment, Trouble> {
        let attachments: Api<VolumeAttachment> = self.all();
        let name = self.attachment.name_any();
        in_time(attachments.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch))).await
    }

    async fn secrets(&self, name: Option<&SecretName>) -> Result<Secrets, Trouble> {
        let Some(SecretName { namespace, name }) = name else { return Ok(Secrets::new()) };
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let missing = || Trouble::Failed(format!("there is no Secret {namespace}/{name}"));
        let data = in_time(secrets.get_opt(name)).await?.ok_or_else(missing)?.data.unwrap_or_default();
        let read = |(key, value): (String, k8s_openapi::ByteString)| {
            let odd = |_| Trouble::Failed(format!("Secret {namespace}/{name}: {key} is not text"));
            String::from_utf8(value.0).map(|value| (key.clone(), value)).map_err(odd)
        };
        data.into_iter().map(read).collect()
    }

    fn all<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>,
    {
        Api::all(self.client.clone())
    }
}

/// Lets a PersistentVolume go that is being deleted, once no attachment needs it.
pub(crate) async fn release_volume(client: kube::Client, name: String, finalizer: String) -> Result<(), String> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let attachments: Api<VolumeAttachment> = Api::all(client);
    let release = async {
        let volume = in_time(volumes.get_opt(&name)).await?.filter(goes);
        let Some(patch) = volume.and_then(|volume| patches::let_go(&volume, &finalizer)) else { return Ok(()) };
        let all = in_time(attachments.list(&ListParams::default())).await?;
        // The end of the last one brings us here again.
        if all.iter().any(|one| one.spec.source.persistent_volume_name.as_ref() == Some(&name)) {
            return Ok(());
        }
        json_patch(&volumes, &name, patch).await?;
        tracing::info!(volume = name, "no attachment needs it any more, it may go");
        Ok(())
    };
    match release.await {
        Ok(()) | Err(Trouble::Gone) => Ok(()),
        Err(Trouble::Failed(why) | Trouble::Changed(why)) => Err(why),
        Err(Trouble::Another) => Err("another one has its name".to_owned()),
    }
}

async fn json_patch<K>(api: &Api<K>, name: &str, operations: Value) -> Result<K, Trouble>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let operations = serde_json::from_value(operations).map_err(|why| Trouble::Failed(why.to_string()))?;
    in_time(api.patch(name, &PatchParams::default(), &Patch::Json::<()>(operations))).await
}

/// An answer of the API server, which is not waited for without end.
async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Trouble> {
    match tokio::time::timeout(ANSWERS_WITHIN, request).await {
        Ok(Ok(answer)) => Ok(answer),
        // A version that is not the current one; a test that failed.
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 409 | 422) => Err(Trouble::Changed(status.message)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(Trouble::Gone),
        Ok(Err(why)) => Err(Trouble::Failed(format!("the API server: {why}"))),
        Err(_) => Err(Trouble::Failed(format!("the API server did not answer within {ANSWERS_WITHIN:?}"))),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a date for people, in the attachment's status; nothing is decided by it"
)]
fn now() -> Timestamp {
    Timestamp::now()
}
