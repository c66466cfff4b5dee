//! Control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with upstream's defaults.
//!
//! Each is a daemon of its own, so that a story can take one away and give it back.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::daemon::{Daemon, Process};
use crate::kubernetes::Kubernetes;
use crate::papers::Papers;
use crate::run::Run;

/// Where the API server listens.
pub const API_PORT: u16 = 6443;
/// How long a component may take to answer.
const PATIENCE: Duration = Duration::from_secs(90);

/// What the API server writes down: everything that Palisade's own account asks for, with its verb.
const AUDIT: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [
  {"level": "Metadata", "users": ["system:serviceaccount:palisade-system:palisade"]},
  {"level": "None"}
]}"#;

/// A part of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// etcd.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
}

impl Part {
    /// In the order in which they start.
    pub const ALL: [Self; 4] = [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler];

    /// Whether it is started again when it ends by itself, as a kubelet does with static pods. Upstream's controllers end on
    /// purpose when they cannot trust what they have cached; etcd and the API server do not, so their end is worth knowing.
    const fn is_kept(self) -> bool {
        matches!(self, Self::ControllerManager | Self::Scheduler)
    }

    /// Its name, as its upstream calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
        }
    }
}

/// The same call, made again a second after it has ended.
fn kept(command: &Command) -> Command {
    let mut keeper = Command::new("sh");
    keeper.args(["-c", r#"while :; do "$0" "$@"; sleep 1; done"#]).arg(command.get_program()).args(command.get_args());
    keeper
}

/// The control plane of a lab.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    run: Run,
    kubernetes: Kubernetes,
    papers: Papers,
}

impl ControlPlane {
    /// The control plane of a lab.
    pub fn of(run: Run, kubernetes: Kubernetes) -> Self {
        Self { run, kubernetes, papers: Papers::of(run) }
    }

    /// Starts a part, unless it runs.
    pub fn start(&self, part: Part) -> Result<()> {
        let daemon = self.daemon(part);
        if daemon.process().is_some() {
            return Ok(());
        }
        let command = self.command(part)?;
        daemon.start(self.run, "control-plane", if part.is_kept() { kept(&command) } else { command })
    }

    /// Ends a part the hard way.
    pub fn kill(&self, part: Part) -> Result<()> {
        let Some(outer) = self.daemon(part).process() else { return Ok(()) };
        // First whoever would start it again.
        let inner = outer.children();
        outer.kill()?;
        inner.into_iter().try_for_each(Process::kill)
    }

    /// Waits until the API server answers.
    pub async fn wait(&self, client: &kube::Client) -> Result<()> {
        let begin = Instant::now();
        loop {
            let ready = client.request_text(http::Request::get("/readyz").body(Vec::new())?);
            if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_secs(2), ready).await {
                return Ok(());
            }
            for part in [Part::Etcd, Part::ApiServer] {
                if self.daemon(part).process().is_none() {
                    bail!("{} ended. {}", part.name(), self.daemon(part).last_words());
                }
            }
            if begin.elapsed() > PATIENCE {
                bail!("the API server does not answer. {}", self.daemon(Part::ApiServer).last_words());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn daemon(&self, part: Part) -> Daemon {
        Daemon::of(self.run, part.name())
    }

    fn command(&self, part: Part) -> Result<Command> {
        let (dir, papers, run) = (self.run.dir(), &self.papers, self.run);
        let (clients, peers) = run.etcd_ports();
        let etcd = format!("http://127.0.0.1:{clients}");
        let shown = |path: std::path::PathBuf| path.display().to_string();
        let mut command = self.kubernetes.command(part.name());
        match part {
            Part::Etcd => {
                let peers = format!("http://127.0.0.1:{peers}");
                command
                    .arg(format!("--data-dir={}", shown(dir.join("etcd"))))
                    .arg(format!("--listen-client-urls={etcd}"))
                    .arg(format!("--advertise-client-urls={etcd}"))
                    .arg(format!("--listen-peer-urls={peers}"))
                    .arg(format!("--initial-advertise-peer-urls={peers}"))
                    .arg(format!("--initial-cluster=default={peers}"))
                    // The lab's state is worth nothing after a crash of the whole host, and the disk is shared with everything.
                    .args(["--unsafe-no-fsync", "--log-level=warn"]);
            }
            Part::ApiServer => {
                let audit = dir.join("audit-policy.json");
                std::fs::write(&audit, AUDIT)?;
                let (certificate, key) = papers.pair("apiserver");
                let (client, client_key) = papers.pair("apiserver-kubelet-client");
                command
                    .arg(format!("--etcd-servers={etcd}"))
                    .arg(format!("--bind-address={}", run.api_address()))
                    .arg(format!("--advertise-address={}", run.api_address()))
                    .arg(format!("--secure-port={API_PORT}"))
                    .arg(format!("--tls-cert-file={}", shown(certificate)))
                    .arg(format!("--tls-private-key-file={}", shown(key)))
                    .arg(format!("--kubelet-client-certificate={}", shown(client)))
                    .arg(format!("--kubelet-client-key={}", shown(client_key)))
                    .arg(format!("--token-auth-file={}", shown(papers.path("tokens.csv"))))
                    .arg(format!("--service-account-key-file={}", shown(papers.path("service-accounts.pub"))))
                    .arg(format!("--service-account-signing-key-file={}", shown(papers.path("service-accounts.key"))))
                    .arg("--service-account-issuer=https://kubernetes.default.svc")
                    .arg(format!("--service-cluster-ip-range={}", run.services()))
                    .arg(format!("--audit-policy-file={}", shown(audit)))
                    .arg(format!("--audit-log-path={}", shown(dir.join("audit.log"))))
                    .args([
                        "--authorization-mode=Node,RBAC",
                        "--enable-admission-plugins=NodeRestriction",
                        "--allow-privileged=true",
                        "--kubelet-preferred-address-types=InternalIP",
                        "--endpoint-reconciler-type=lease",
                    ]);
            }
            Part::ControllerManager => {
                command
                    .arg(format!("--kubeconfig={}", shown(papers.kubeconfig(part.name()))))
                    .arg(format!("--root-ca-file={}", shown(papers.ca())))
                    .arg(format!("--service-account-private-key-file={}", shown(papers.path("service-accounts.key"))))
                    .args(["--use-service-account-credentials=true", "--leader-elect=false", "--secure-port=0"]);
            }
            Part::Scheduler => {
                command
                    .arg(format!("--kubeconfig={}", shown(papers.kubeconfig(part.name()))))
                    .args(["--leader-elect=false", "--secure-port=0"]);
            }
        }
        Ok(command)
    }
}
