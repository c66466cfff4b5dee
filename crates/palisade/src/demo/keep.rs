//! Demo / keep: the API for kubectl while the demo runs, and a clean end on Ctrl-C.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use palisade_cluster::Cluster;
use palisade_cluster::api::Server;
use palisade_cluster::api::http::{Listening, kubeconfig};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// The API on loopback and the kubeconfig that points to it; both end with this.
pub(super) struct Kept {
    kubeconfig: PathBuf,
    serving: JoinHandle<()>,
}

impl Kept {
    /// Serves the cluster's API on a free port.
    pub(super) async fn serve(cluster: &Cluster) -> anyhow::Result<Self> {
        let listening = Listening::on(0).await.context("failed to listen on the loopback address")?;
        let address = listening.address();
        let path = std::env::temp_dir().join(format!("palisade-demo-{}.kubeconfig", std::process::id()));
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|mut file| file.write_all(kubeconfig(address).as_bytes()))
            .with_context(|| format!("failed to write {}", path.display()))?;
        let server = Server::new(cluster.api().clone());
        let serving = tokio::spawn(async move { drop(listening.serve(server).await) });
        Ok(Self { kubeconfig: path, serving })
    }

    /// What to type in another terminal.
    pub(super) fn command(&self) -> String {
        let what = "get nodes,pods,nodefences,nodefencingrequests -A -o wide";
        format!("kubectl --kubeconfig {} {what}", self.kubeconfig.display())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.serving.abort();
        // Nobody can be told any more; a file that is gone already is as good.
        let _ = fs::remove_file(&self.kubeconfig);
    }
}

/// Becomes true when somebody asks the demo to end.
pub(super) fn interrupts() -> anyhow::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (mut signals, asked) = (signal(kind).context("failed to listen for Ctrl-C")?, Arc::clone(&asked));
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                asked.store(true, Ordering::Relaxed);
            }
        });
    }
    Ok(asked)
}
