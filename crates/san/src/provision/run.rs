//! Run: one loop that hears what the watches see, and works off what is due.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use palisade_csi::messages::controller::DeleteVolumeRequest;
use palisade_csi::{Client, Status};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::claims::{self, Wish};
use super::watch::{self, Change, News};

/// How long the driver, and the API server, are waited for.
const WITHIN: Duration = Duration::from_secs(15);
/// The pause after a failure; it doubles each time.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Makes PersistentVolumes for claims, and destroys what released ones leave behind, until it is told to stop.
pub async fn run(client: kube::Client, socket: &Path, stop: impl Future<Output = ()> + Send) {
    let (tell, mut hear) = mpsc::unbounded_channel();
    let mut desk = Desk::new(client.clone(), socket);
    let mut watches = Box::pin(watch::all(&client, &tell));
    tokio::pin!(stop);
    loop {
        let due = desk.due.values().map(|due| due.at).min();
        tokio::select! {
            biased;
            () = &mut stop => return,
            () = &mut watches => return,
            Some(news) = hear.recv() => desk.hear(news),
            () = until(due) => {
                tokio::select! {
                    biased;
                    () = &mut stop => return,
                    () = desk.work() => {}
                }
            }
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Something to look after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Case {
    /// A claim, by namespace and name.
    Claim(String, String),
    /// A PersistentVolume.
    Volume(String),
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    pause: Duration,
}

/// What is known, and what is to be done.
struct Desk {
    client: kube::Client,
    driver: Client,
    claims: BTreeMap<Case, PersistentVolumeClaim>,
    volumes: BTreeMap<Case, PersistentVolume>,
    classes: BTreeMap<String, StorageClass>,
    due: BTreeMap<Case, Due>,
}

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the driver: {code:?}: {words}", code = .0.code(), words = .0.message())]
    Driver(#[from] Status),
    #[error("the API server: {0}")]
    Api(#[from] kube::Error),
    #[error("what we made is not understood: {0}")]
    Made(#[from] serde_json::Error),
    #[error("the driver made no volume")]
    NoVolume,
    #[error("the API server did not answer within {WITHIN:?}")]
    Silent,
    #[error("{0}")]
    Impossible(String),
}

impl Desk {
    fn new(client: kube::Client, socket: &Path) -> Self {
        Self {
            client,
            driver: Client::new(socket),
            claims: BTreeMap::new(),
            volumes: BTreeMap::new(),
            classes: BTreeMap::new(),
            due: BTreeMap::new(),
        }
    }

    fn hear(&mut self, news: News) {
        let Self { claims, volumes, classes, due, .. } = self;
        match news {
            News::Claims(change) => take(claims, due, change, |claim: &PersistentVolumeClaim| {
                Case::Claim(claim.namespace().unwrap_or_default(), claim.name_any())
            }),
            News::Volumes(change) => {
                take(volumes, due, change, |volume: &PersistentVolume| Case::Volume(volume.name_any()));
            }
            News::Classes(change) => {
                match change {
                    Change::All(all) => *classes = all.into_iter().map(|class| (class.name_any(), class)).collect(),
                    Change::Set(class) => drop(classes.insert(class.name_any(), class)),
                    Change::Gone(class) => drop(classes.remove(&class.name_any())),
                }
                // Whoever waited for a class may have it now.
                due.extend(claims.keys().map(|case| (case.clone(), Due { at: Instant::now(), pause: PAUSE })));
            }
        }
    }

    /// Works off one case that is due.
    async fn work(&mut self) {
        let now = Instant::now();
        let first = self.due.iter().find(|(_, due)| due.at <= now).map(|(case, due)| (case.clone(), *due));
        let Some((case, due)) = first else { return };
        let done = match &case {
            Case::Claim(..) => self.claim(&case).await,
            Case::Volume(_) => self.volume(&case).await,
        };
        match done {
            Ok(()) => drop(self.due.remove(&case)),
            Err(why) => {
                let pause = due.pause;
                tracing::warn!(?case, %why, "did not work; next try in {pause:?}");
                let next = Due { at: Instant::now() + pause, pause: (pause * 2).min(LONGEST_PAUSE) };
                self.due.insert(case, next);
            }
        }
    }

    async fn claim(&self, case: &Case) -> Result<(), Failure> {
        let Some(claim) = self.claims.get(case) else { return Ok(()) };
        if self.volumes.contains_key(&Case::Volume(claims::name_for(claim))) {
            return Ok(());
        }
        let class = claim.spec.as_ref().and_then(|spec| self.classes.get(spec.storage_class_name.as_deref()?));
        let request = match claims::wish(claim, class) {
            Wish::Nothing => return Ok(()),
            Wish::Impossible(why) => return Err(Failure::Impossible(why)),
            Wish::Volume(request) => *request,
        };
        let Some(class) = class else { return Ok(()) };
        let made = self.driver.call(request, WITHIN).await?.volume.ok_or(Failure::NoVolume)?;
        let object: PersistentVolume = serde_json::from_value(claims::volume_for(claim, class, &made))?;
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        match in_time(volumes.create(&PostParams::default(), &object)).await {
            Ok(_) => {
                let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
                tracing::info!(namespace, claim = name, volume = made.volume_id, "made a volume for a claim");
                Ok(())
            }
            // Its name holds the claim's UID: it is the one that we wanted to make.
            Err(Failure::Api(kube::Error::Api(status))) if status.code == 409 => Ok(()),
            Err(why) => Err(why),
        }
    }

    async fn volume(&self, case: &Case) -> Result<(), Failure> {
        let Some(volume) = self.volumes.get(case) else { return Ok(()) };
        let Some(handle) = claims::left_behind(volume) else { return Ok(()) };
        let request = DeleteVolumeRequest { volume_id: handle.to_owned(), ..DeleteVolumeRequest::default() };
        self.driver.call(request, WITHIN).await?;
        // Already on its way: somebody else deletes it, or holds it.
        if volume.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid: volume.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        match in_time(volumes.delete(&volume.name_any(), &params)).await {
            Ok(_) => tracing::info!(volume = handle, "destroyed a volume that its claim left behind"),
            // Gone, or another one by that name.
            Err(Failure::Api(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {}
            Err(why) => return Err(why),
        }
        Ok(())
    }
}

/// Takes in what was seen; whatever is new is due at once.
fn take<K>(known: &mut BTreeMap<Case, K>, due: &mut BTreeMap<Case, Due>, change: Change<K>, case: impl Fn(&K) -> Case) {
    let now = Due { at: Instant::now(), pause: PAUSE };
    match change {
        Change::All(all) => {
            *known = all.into_iter().map(|object| (case(&object), object)).collect();
            due.extend(known.keys().map(|case| (case.clone(), now)));
        }
        Change::Set(object) => {
            due.insert(case(&object), now);
            known.insert(case(&object), object);
        }
        Change::Gone(object) => {
            due.remove(&case(&object));
            known.remove(&case(&object));
        }
    }
}

async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(WITHIN, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Failure::Silent),
    }
}
