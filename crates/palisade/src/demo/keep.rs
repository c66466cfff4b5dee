//! Demo / keep: the API for kubectl while the demo runs, and a clean end on Ctrl-C.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use palisade_cluster::Cluster;
use palisade_cluster::api::Server;
use palisade_cluster::api::http::{Listening, kubeconfig};
use palisade_operator::Metrics;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The API on loopback and the kubeconfig that points to it; both end with this.
pub(super) struct Kept {
    kubeconfig: PathBuf,
    serving: Vec<JoinHandle<()>>,
    metrics: Option<SocketAddr>,
}

impl Kept {
    /// Serves the cluster's API on a free port, and what the operator counts on another.
    pub(super) async fn serve(cluster: &Cluster, metrics: Option<Metrics>) -> anyhow::Result<Self> {
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
        let mut kept = Self { kubeconfig: path, serving: Vec::new(), metrics: None };
        kept.serving.push(tokio::spawn(async move { drop(listening.serve(server).await) }));
        if let Some(metrics) = metrics {
            let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listening =
                palisade_operator::http::Listening::on(free).await.context("failed to listen for metrics")?;
            kept.metrics = Some(listening.address());
            kept.serving.push(tokio::spawn(async move { drop(listening.serve(metrics).await) }));
        }
        Ok(kept)
    }

    /// What to type in another terminal.
    pub(super) fn command(&self) -> String {
        let what = "get nodes,pods,nodefences,nodefencingrequests -A -o wide";
        let kubectl = format!("kubectl --kubeconfig {} {what}", self.kubeconfig.display());
        let metrics = self.metrics.map(|address| format!("\n  curl http://{address}/metrics")).unwrap_or_default();
        kubectl + &metrics
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
        // Nobody can be told any more; a file that is gone already is as good.
        let _ = fs::remove_file(&self.kubeconfig);
    }
}

/// Tells when somebody asks the demo to end.
pub(super) fn interrupts() -> anyhow::Result<Arc<Notify>> {
    let asked = Arc::new(Notify::new());
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (mut signals, asked) = (signal(kind).context("failed to listen for Ctrl-C")?, Arc::clone(&asked));
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                asked.notify_one();
            }
        });
    }
    Ok(asked)
}
