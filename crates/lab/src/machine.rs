//! Machine: network, PID and mount namespaces with a containerd and a kubelet of their own, which can be switched off.
//!
//! Off kills the first process of the PID namespace, and with it everything that runs there, at once and without a last word:
//! what was in memory is lost. On starts it again with a new boot ID, as a kernel would have it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde_json::json;

use crate::daemon::{self, Daemon, Process};
use crate::kubernetes::Kubernetes;
use crate::network;
use crate::papers::{Papers, random_uuid};
use crate::run::Run;

/// One machine.
#[derive(Clone, Debug)]
pub struct Machine {
    run: Run,
    name: String,
    index: u8,
    /// The failure domain that its Node says it is in.
    zone: String,
    kubernetes: Kubernetes,
    /// The program of the SAN's driver.
    san: PathBuf,
}

/// In the machine's own /run, which is lost with its memory.
const CONTAINERD_SOCKET: &str = "/run/containerd.sock";
const BOOT: &str = include_str!("../machine/boot.sh");

impl Machine {
    /// The machine of this number.
    pub fn of(run: Run, index: u8, zone: &str, kubernetes: &Kubernetes, san: &Path) -> Self {
        let (name, zone) = (format!("n{index}"), zone.to_owned());
        Self { run, name, index, zone, kubernetes: kubernetes.clone(), san: san.to_owned() }
    }

    /// Its name, which is its Node's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number.
    pub fn index(&self) -> u8 {
        self.index
    }

    /// What its disk holds.
    pub fn dir(&self) -> PathBuf {
        self.run.dir().join(&self.name)
    }

    /// The UUID that its firmware shows.
    pub fn uuid(&self) -> Result<String> {
        Ok(fs::read_to_string(self.dir().join("machine-id"))?.trim().to_owned())
    }

    /// Installs it: what is on its disk before it is switched on for the first time.
    pub fn install(&self) -> Result<()> {
        let dir = self.dir();
        for part in ["log", "cni", "cni-state", "kubelet", "containerd"] {
            fs::create_dir_all(dir.join(part))?;
        }
        fs::write(dir.join("machine-id"), random_uuid()?)?;
        fs::write(dir.join("boot.sh"), BOOT)?;
        fs::write(dir.join("containerd.toml"), self.containerd())?;
        fs::write(dir.join("cni").join("10-lab.conflist"), self.cni().to_string())?;
        fs::write(dir.join("kubelet.json"), self.kubelet().to_string())?;
        fs::write(dir.join("proxy.json"), self.proxy().to_string())?;
        Ok(())
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.daemon().process().is_some()
    }

    /// Switches it on, unless it is.
    pub fn on(&self) -> Result<()> {
        if self.is_on() {
            return Ok(());
        }
        network::lighten(self.run, &self.name)?;
        let (dir, papers) = (self.dir(), Papers::of(self.run));
        fs::write(dir.join("boot-id"), random_uuid()?)?;
        let boots = self.boots() + 1;
        fs::write(dir.join("boots"), boots.to_string())?;
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/var/run/netns/{}", self.run.namespace(&self.name)))
            .args(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--uts", "bash"])
            .arg(dir.join("boot.sh"))
            .env("MACHINE", &self.name)
            .env("MACHINE_DIR", &dir)
            .env("ADDRESS", self.run.machine_address(self.index).to_string())
            .env("CONTAINERD", CONTAINERD_SOCKET)
            .env("IMAGES", self.run.dir().join("images"))
            .env("SAN", self.run.dir().join("san"))
            .env("SAN_PROGRAM", &self.san)
            .env("KUBERNETES", self.kubernetes.binary())
            .env("KUBECONFIG_OF_NODE", papers.kubeconfig(&self.name))
            .env("LABELS", format!("topology.kubernetes.io/zone={}", self.zone));
        self.daemon().start(self.run, &self.name, command).with_context(|| format!("{} does not start", self.name))
    }

    /// Switches it off: everything in it is gone when this returns.
    pub fn off(&self) -> Result<()> {
        let Some(outer) = self.daemon().process() else { return Ok(()) };
        // First, so that nobody says goodbye.
        let dark = network::darken(self.run, &self.name);
        // The inner one is the machine; the outer one only waits for it.
        let inner = outer.children();
        for process in &inner {
            process.kill()?;
        }
        outer.kill()?;
        // The kernel ends the namespace before its first process is gone; whoever is left would write to the SAN.
        for process in daemon::marked(&self.run.mark(&self.name)) {
            process.kill()?;
        }
        dark
    }

    /// How many times it has been switched on.
    pub fn boots(&self) -> u32 {
        let text = fs::read_to_string(self.dir().join("boots")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Counts its boots anew: the one that it is in is the first.
    pub fn forget_boots(&self) -> Result<()> {
        fs::write(self.dir().join("boots"), "1").context("cannot count boots anew")
    }

    /// Stops its kubelet where it stands; its pods go on.
    pub fn hang_kubelet(&self) {
        self.programs("kubelet").into_iter().for_each(|process| process.signal(Signal::STOP));
    }

    /// Lets it go on.
    pub fn resume_kubelet(&self) {
        self.programs("kubelet").into_iter().for_each(|process| process.signal(Signal::CONT));
    }

    /// Ends its kubelet, which its init starts again.
    pub fn restart_kubelet(&self) -> Result<()> {
        self.programs("kubelet").into_iter().try_for_each(Process::kill)
    }

    /// Ends its containerd, which its init starts again; its containers go on.
    pub fn restart_containerd(&self) -> Result<()> {
        self.programs("containerd").into_iter().try_for_each(Process::kill)
    }

    /// Stops its containerd where it stands, or lets it go on.
    pub fn hang_containerd(&self, hung: bool) {
        let signal = if hung { Signal::STOP } else { Signal::CONT };
        self.programs("containerd").into_iter().for_each(|process| process.signal(signal));
    }

    fn programs(&self, component: &str) -> Vec<Process> {
        let all = daemon::marked(&self.run.mark(&self.name)).into_iter();
        all.filter(|process| daemon::runs(*process, component)).collect()
    }

    fn daemon(&self) -> Daemon {
        Daemon::of(self.run, &format!("machine-{}", self.name))
    }

    fn containerd(&self) -> String {
        let dir = self.dir();
        let (root, cni) = (dir.join("containerd"), dir.join("cni"));
        format!(
            r#"version = 2
root = "{root}"
state = "/run/containerd"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
"#,
            root = root.display(),
            pause = crate::image::PAUSE,
            cni = cni.display(),
        )
    }

    fn cni(&self) -> serde_json::Value {
        let bridge = json!({
            "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
            "ipam": {
                "type": "host-local", "dataDir": "/run/cni-ipam",
                "ranges": [[{ "subnet": self.run.pods(self.index) }]], "routes": [{ "dst": "0.0.0.0/0" }],
            },
        });
        json!({ "cniVersion": "0.4.0", "name": "lab", "plugins": [bridge, { "type": "portmap", "capabilities": { "portMappings": true } }] })
    }

    fn kubelet(&self) -> serde_json::Value {
        json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
            "authentication": {
                "anonymous": { "enabled": false }, "webhook": { "enabled": true },
                "x509": { "clientCAFile": Papers::of(self.run).ca() },
            },
            "authorization": { "mode": "Webhook" },
            // One host is shared by all machines: none may take its cgroups, its memory or its disk for its own.
            "failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupsPerQOS": false, "enforceNodeAllocatable": [],
            "cgroupRoot": format!("/{}", self.run.cgroup(&self.name)),
            "evictionHard": { "memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%" },
            "localStorageCapacityIsolation": false, "failSwapOn": false, "makeIPTablesUtilChains": false,
            "imageGCHighThresholdPercent": 100, "resolvConf": "/dev/null", "registerNode": true,
            "healthzPort": 0, "protectKernelDefaults": false,
        })
    }

    fn proxy(&self) -> serde_json::Value {
        json!({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
            "clientConnection": { "kubeconfig": Papers::of(self.run).kubeconfig(&format!("{}-proxy", self.name)) },
            "conntrack": { "maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s" },
            "clusterCIDR": self.run.block(), "bindAddress": self.run.machine_address(self.index).to_string(),
            "healthzBindAddress": "", "metricsBindAddress": "127.0.0.1:10249",
        })
    }
}
