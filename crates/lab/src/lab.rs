//! Lab: a whole one, from nothing to Ready nodes, and back to nothing.
//!
//! Its state is on disk, so that another call finds it: machines by their pid files, the shape in `lab.json`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::api::{Api, ListParams};
use serde::{Deserialize, Serialize};

use crate::control_plane::{ControlPlane, Part};
use crate::daemon::Daemon;
use crate::kubernetes::Kubernetes;
use crate::machine::Machine;
use crate::papers::Papers;
use crate::run::Run;
use crate::tool::call;
use crate::{image, install, ipmi, leftovers, network, objects};

/// How long the machines may take until all are Ready.
const READY: Duration = Duration::from_mins(3);
/// Far more than the stories write, and soon filled.
const SAN_SIZE: &str = "size=64m,mode=755";

const WATCHERS: &str = "fs.inotify.max_user_instances";
/// For as many labs as a machine can bear.
const ENOUGH_WATCHERS: u32 = 4096;

/// What a lab has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Machines, called n1, n2 and so on. With none it is a bare control plane.
    pub machines: u8,
    /// Failure domains to which they are dealt out in turn.
    pub zones: u8,
}

/// Our own programs, as they were built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// `palisade`.
    pub palisade: PathBuf,
    /// `palisade-san`.
    pub san: PathBuf,
    /// `palisade-attacher`.
    pub attacher: PathBuf,
    /// `palisade-lab`, for the BMCs.
    pub lab: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    shape: Shape,
    programs: Programs,
}

/// A lab.
#[derive(Clone, Debug)]
pub struct Lab {
    run: Run,
    shape: Shape,
    programs: Programs,
    plane: ControlPlane,
    machines: Vec<Machine>,
}

impl Lab {
    /// A new one, with a number of its own and nothing in it yet. Whatever becomes of it, [`Lab::down`] takes it away.
    pub fn new(shape: Shape, programs: Programs, tell: &mut dyn FnMut(&str)) -> Result<Self> {
        check(shape)?;
        let kubernetes = Kubernetes::built(&mut *tell)?;
        Ok(Self::of(Run::claim()?, shape, programs, &kubernetes))
    }

    /// One that is up.
    pub fn open(run: Run) -> Result<Self> {
        let text = fs::read_to_string(run.dir().join("lab.json"));
        let text =
            text.with_context(|| format!("lab {} is in ruins; `cargo xtask lab down` clears it away", run.number()))?;
        let Kept { shape, programs } = serde_json::from_str(&text)?;
        Ok(Self::of(run, shape, programs, &Kubernetes::built(|_| {})?))
    }

    /// Takes it down, and everything that it made.
    pub fn down(&self) -> Result<()> {
        leftovers::clear(self.run)
    }

    /// Its number.
    pub fn run(&self) -> Run {
        self.run
    }

    /// Its machines.
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// The machine of this name.
    pub fn machine(&self, name: &str) -> Result<&Machine> {
        let found = self.machines.iter().find(|machine| machine.name() == name);
        found.with_context(|| format!("there is no machine {name}; there are n1 to n{}", self.shape.machines))
    }

    /// Its control plane.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// The kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        Papers::of(self.run).kubeconfig("admin")
    }

    /// A client of its administrator.
    pub async fn client(&self) -> Result<Client> {
        objects::client(&self.kubeconfig()).await
    }

    /// An operator process outside the cluster, with the rights of Palisade's account.
    pub fn operator(&self, name: &str) -> Daemon {
        Daemon::of(self.run, &format!("operator-{name}"))
    }

    /// Starts it.
    pub fn start_operator(&self, name: &str, kubeconfig: &Path) -> Result<()> {
        let mut command = Command::new(&self.programs.palisade);
        command.arg("operator").arg("--kubeconfig").arg(kubeconfig).args(["--identity", name]);
        command.args(["--listen", "127.0.0.1:0", "--act-image", image::PALISADE]);
        self.operator(name).start(self.run, "operator", command)
    }

    fn of(run: Run, shape: Shape, programs: Programs, kubernetes: &Kubernetes) -> Self {
        let zone = |index: u8| format!("zone-{}", (index - 1) % shape.zones.max(1) + 1);
        let machine = |index| Machine::of(run, index, &zone(index), kubernetes, &programs.san);
        let machines = (1..=shape.machines).map(machine).collect();
        Self { run, shape, plane: ControlPlane::of(run, kubernetes.clone()), machines, programs }
    }

    /// Raises it: all nodes are Ready when this returns. `tell` hears how it goes.
    pub async fn raise(&self, tell: &mut dyn FnMut(&str)) -> Result<()> {
        let (run, dir) = (self.run, self.run.dir());
        let kept = Kept { shape: self.shape, programs: self.programs.clone() };
        fs::write(dir.join("lab.json"), serde_json::to_vec_pretty(&kept)?)?;
        let names: Vec<String> = self.machines.iter().map(|machine| machine.name().to_owned()).collect();
        Papers::of(run).write(&names)?;
        room_for_watchers(tell)?;
        network::raise(run, self.shape.machines)?;
        tell("starting the control plane");
        for part in Part::ALL {
            self.plane.start(part)?;
        }
        image::write(&dir.join("images"), &self.programs.palisade)?;
        self.mount_san()?;
        tell("starting the machines");
        for machine in &self.machines {
            network::wire(run, machine.name(), machine.index(), self.shape.machines)?;
            machine.install()?;
            machine.on()?;
        }
        let client = self.client().await?;
        self.plane.wait(&client).await?;
        if self.machines.is_empty() {
            return self.wait_accounts(&client).await;
        }
        tell("installing Palisade's kinds, the SAN and the BMCs");
        install::everything(self, &client).await?;
        self.serve()?;
        tell("waiting for the nodes");
        self.wait_ready(&client).await
    }

    /// The SAN is a file system of its own, in memory, so that it can be full without anybody else's being so.
    fn mount_san(&self) -> Result<()> {
        let san = self.run.dir().join("san");
        fs::create_dir_all(&san)?;
        call("mount", ["-t", "tmpfs", "-o", SAN_SIZE, "palisade-lab-san", &san.display().to_string()]).map(drop)
    }

    /// Fills the SAN to its last byte, or makes room again.
    pub fn fill_san(&self, full: bool) -> Result<()> {
        let ballast = self.run.dir().join("san").join("ballast");
        if !full {
            return fs::remove_file(&ballast).or_else(absent).context("the SAN's ballast cannot be removed");
        }
        let mut file = fs::File::create(&ballast)?;
        let block = vec![b'x'; 1 << 20];
        let mut size = block.len();
        // Smaller and smaller, until not one byte fits.
        while size > 0 {
            match file.write(&block[..size]) {
                Ok(_) => {}
                Err(why) if why.kind() == io::ErrorKind::StorageFull => size /= 2,
                Err(why) => return Err(why).context("the SAN cannot be filled"),
            }
        }
        Ok(())
    }

    /// What runs beside the cluster: the SAN's controller, its provisioner and attacher, and the BMCs.
    fn serve(&self) -> Result<()> {
        let (dir, admin) = (self.run.dir(), self.kubeconfig());
        let socket = dir.join("san.sock");
        let mut controller = Command::new(&self.programs.san);
        controller.arg("controller").arg("--san").arg(dir.join("san")).arg("--socket").arg(&socket);
        let mut provisioner = Command::new(&self.programs.san);
        provisioner.arg("provisioner").arg("--socket").arg(&socket).arg("--kubeconfig").arg(&admin);
        let mut attacher = Command::new(&self.programs.attacher);
        attacher.arg("--csi-address").arg(&socket).arg("--kubeconfig").arg(&admin);
        let mut bmcs = Command::new(&self.programs.lab);
        bmcs.arg("bmcs").arg(self.run.number().to_string());
        for (name, command) in
            [("san-controller", controller), ("san-provisioner", provisioner), ("attacher", attacher), ("bmcs", bmcs)]
        {
            Daemon::of(self.run, name).start(self.run, "control-plane", command)?;
        }
        ipmi::start(self.run, &self.machines, &self.programs.lab)
    }

    /// The API server answers before it has made its first namespaces, and nobody has an account in them before the controller
    /// manager has made it.
    async fn wait_accounts(&self, client: &Client) -> Result<()> {
        let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::default_namespaced(client.clone());
        let begin = Instant::now();
        while accounts.get_opt("default").await?.is_none() {
            if begin.elapsed() > READY {
                bail!("the controller manager has made no account in the namespace default after {READY:?}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    async fn wait_ready(&self, client: &Client) -> Result<()> {
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
        let begin = Instant::now();
        loop {
            let all = nodes.list(&ListParams::default()).await?.items;
            let is_ready = |node: &k8s_openapi::api::core::v1::Node| {
                let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
                conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
            };
            let ready = all.iter().filter(|node| is_ready(node)).count();
            if ready == self.machines.len() {
                return Ok(());
            }
            if begin.elapsed() > READY {
                let log = self.machines.first().map(|machine| machine.dir().join("log")).unwrap_or_default();
                bail!("{ready} of {} nodes are Ready after {READY:?}; see {}", self.machines.len(), log.display());
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
}

/// Each kubelet, containerd and kube-proxy watches files, and the kernel allows a user 128 watchers in all: beyond that a kubelet
/// starts as if nothing were wrong, and never hears of a CSI driver. The limit is the host's, so it stays raised.
fn room_for_watchers(tell: &mut dyn FnMut(&str)) -> Result<()> {
    let is: u32 = call("sysctl", ["-n", WATCHERS])?.trim().parse().unwrap_or(u32::MAX);
    if is < ENOUGH_WATCHERS {
        tell(&format!("raising {WATCHERS} of this host from {is} to {ENOUGH_WATCHERS}"));
        call("sysctl", ["-qw", &format!("{WATCHERS}={ENOUGH_WATCHERS}")])?;
    }
    Ok(())
}

fn absent(why: io::Error) -> io::Result<()> {
    if why.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(why) }
}

/// What has to be so before anything is made.
fn check(shape: Shape) -> Result<()> {
    let most = Run::most_machines();
    if shape.machines > most {
        bail!("a lab has at most {most} machines, not {}", shape.machines);
    }
    if !rustix::process::geteuid().is_root() {
        bail!("the lab makes namespaces, bridges and mounts, so it has to be run as root");
    }
    let missing = |program: &&(&str, &str)| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        !std::env::split_paths(&path).any(|place| place.join(program.0).is_file())
    };
    let missing: Vec<String> = PROGRAMS
        .iter()
        .filter(missing)
        .map(|(program, package)| format!("{program} (Debian: package {package})"))
        .collect();
    if !missing.is_empty() {
        bail!("the lab needs programs that are not here: {}", missing.join(", "));
    }
    Ok(())
}

/// What the machines are made of, and the Debian package of each.
pub const PROGRAMS: [(&str, &str); 9] = [
    ("busybox", "busybox-static"),
    ("containerd", "containerd"),
    ("go", "golang"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("nsenter", "util-linux"),
    ("runc", "runc"),
    ("sysctl", "procps"),
    ("unshare", "util-linux"),
];
