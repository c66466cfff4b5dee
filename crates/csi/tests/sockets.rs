//! Both sides of a Unix socket: what is asked arrives, what is answered comes back, and nothing hangs.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use palisade_csi::messages::controller::{
    ControllerGetCapabilitiesResponse, ControllerPublishVolumeRequest, ControllerPublishVolumeResponse,
    ControllerRpcType, ControllerUnpublishVolumeRequest,
};
use palisade_csi::messages::identity::{GetPluginInfoRequest, GetPluginInfoResponse, ProbeRequest, ProbeResponse};
use palisade_csi::messages::registration::{CSI_PLUGIN, InfoRequest, PluginInfo};
use palisade_csi::messages::volume::{Mode, VolumeCapability};
use palisade_csi::{Client, Code, Listener, Request, Services, Status};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(10);

/// A directory of its own for each test, gone at its end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("palisade-csi-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("csi.sock")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that runs until it is told to stop.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Running {
    async fn at(place: &Place, services: Services) -> Self {
        let listener = Listener::bind(&place.socket()).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(listener.serve(services, async {
            let _ = stopped.await;
        }));
        Self { stop, task }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

fn named(name: &'static str) -> Services {
    Services::new().on(move |_: GetPluginInfoRequest| async move {
        Ok(GetPluginInfoResponse { name: name.to_owned(), ..GetPluginInfoResponse::default() })
    })
}

#[tokio::test]
async fn a_request_arrives_whole_and_so_does_its_answer() {
    let place = Place::new();
    let services = Services::new().on(|request: ControllerPublishVolumeRequest| async move {
        let mode = request.volume_capability.as_ref().map(VolumeCapability::mode);
        assert_eq!((mode, request.readonly), (Some(Mode::SingleNodeWriter), true));
        assert_eq!(request.secrets["password"], "hunter2");
        let told = format!("{} on {}", request.volume_id, request.node_id);
        Ok(ControllerPublishVolumeResponse { publish_context: BTreeMap::from([("told".to_owned(), told)]) })
    });
    let _running = Running::at(&place, services).await;
    let request = ControllerPublishVolumeRequest {
        volume_id: "v1".to_owned(),
        node_id: "n1".to_owned(),
        volume_capability: Some(VolumeCapability::mount(Mode::SingleNodeWriter)),
        readonly: true,
        secrets: BTreeMap::from([("password".to_owned(), "hunter2".to_owned())]),
        ..ControllerPublishVolumeRequest::default()
    };
    let answer = Client::new(&place.socket()).call(request, SOON).await.unwrap();
    assert_eq!(answer.publish_context["told"], "v1 on n1");
}

#[tokio::test]
async fn a_method_that_nobody_answers_is_unimplemented() {
    let place = Place::new();
    let _running = Running::at(&place, named("a")).await;
    let why = Client::new(&place.socket()).call(ProbeRequest {}, SOON).await.unwrap_err();
    assert_eq!(why.code(), Code::Unimplemented);
    assert_eq!(why.message(), "/csi.v1.Identity/Probe is not served here");
}

#[tokio::test]
async fn a_refusal_keeps_its_code_and_its_words() {
    let place = Place::new();
    let services = Services::new().on(|_: ControllerUnpublishVolumeRequest| async {
        Err::<_, Status>(Status::failed_precondition("v1 is in use on n2"))
    });
    let _running = Running::at(&place, services).await;
    let request = ControllerUnpublishVolumeRequest::default();
    let why = Client::new(&place.socket()).call(request, SOON).await.unwrap_err();
    assert_eq!((why.code(), why.message()), (Code::FailedPrecondition, "v1 is in use on n2"));
}

#[tokio::test]
async fn an_answer_that_never_comes_is_a_deadline_and_holds_up_nobody_else() {
    let place = Place::new();
    let silent = Services::new().on(|_: ProbeRequest| std::future::pending::<Result<ProbeResponse, Status>>());
    let _running = Running::at(&place, named("a").and(silent)).await;
    let client = Client::new(&place.socket());
    let waiting = client.call(ProbeRequest {}, Duration::from_millis(300));
    let other = client.call(GetPluginInfoRequest {}, SOON);
    let (never, name) = tokio::join!(waiting, other);
    assert_eq!(never.unwrap_err().code(), Code::DeadlineExceeded);
    assert_eq!(name.unwrap().name, "a");
}

#[tokio::test]
async fn nobody_there_is_unavailable_and_a_server_that_comes_back_is_found() {
    let place = Place::new();
    let client = Client::new(&place.socket());
    let name = || async { client.call(GetPluginInfoRequest {}, SOON).await.map(|info| info.name) };
    assert_eq!(name().await.unwrap_err().code(), Code::Unavailable);
    let running = Running::at(&place, named("before")).await;
    assert_eq!(name().await.unwrap(), "before");
    running.stop().await;
    assert!(!place.socket().exists(), "the socket goes with its server");
    let _running = Running::at(&place, named("after")).await;
    // The first call may still find the old connection broken; whoever calls tries again.
    let found = match name().await {
        Ok(found) => found,
        Err(_) => name().await.unwrap(),
    };
    assert_eq!(found, "after");
}

#[tokio::test]
async fn a_socket_is_taken_over_from_the_dead_and_not_from_the_living() {
    let place = Place::new();
    // As a process that was killed leaves it: the file is there, and nobody listens.
    drop(std::os::unix::net::UnixListener::bind(place.socket()).unwrap());
    assert!(place.socket().exists());
    let _running = Running::at(&place, named("a")).await;
    let why = Listener::bind(&place.socket()).await.unwrap_err();
    assert_eq!(why.kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(Client::new(&place.socket()).call(GetPluginInfoRequest {}, SOON).await.unwrap().name, "a");
}

#[tokio::test]
async fn a_kubelet_asks_by_the_name_without_a_version() {
    assert_eq!(InfoRequest::PATH, "/pluginregistration.Registration/GetInfo");
    let place = Place::new();
    let services = Services::new().on(|_: InfoRequest| async {
        Ok(PluginInfo {
            r#type: CSI_PLUGIN.to_owned(),
            supported_versions: vec!["1.0.0".to_owned()],
            ..PluginInfo::default()
        })
    });
    let _running = Running::at(&place, services).await;
    let info = Client::new(&place.socket()).call(InfoRequest {}, SOON).await.unwrap();
    assert_eq!((info.r#type.as_str(), info.supported_versions.len()), ("CSIPlugin", 1));
}

#[test]
fn secrets_are_never_printed() {
    let request = ControllerPublishVolumeRequest {
        volume_id: "v1".to_owned(),
        secrets: BTreeMap::from([("password".to_owned(), "hunter2".to_owned())]),
        ..ControllerPublishVolumeRequest::default()
    };
    let printed = format!("{request:?}");
    assert!(printed.contains("v1") && printed.contains("1 hidden"), "{printed}");
    assert!(!printed.contains("hunter2") && !printed.contains("password"), "{printed}");
}

#[test]
fn a_capability_that_we_do_not_know_is_no_capability_that_we_do() {
    let mut known = ControllerGetCapabilitiesResponse { capabilities: vec![ControllerRpcType::ListVolumes.into()] };
    assert!(known.has(ControllerRpcType::ListVolumes) && !known.has(ControllerRpcType::PublishReadonly));
    // Number 17 is LIST_VOLUME_HEALTH, newer than anything here.
    let bytes = [0x0a, 0x04, 0x0a, 0x02, 0x08, 17];
    known = prost::Message::decode(bytes.as_slice()).unwrap();
    assert_eq!(known.capabilities.len(), 1);
    assert!(!known.has(ControllerRpcType::ListVolumes));
}
