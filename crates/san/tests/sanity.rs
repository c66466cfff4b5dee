//! csi-sanity, Kubernetes' own test of CSI drivers, against the real binary: a controller and a node, as two processes.
//!
//! It needs Go, modules from the module proxy, and root for its mounts; so it runs only in the lab (`PALISADE_LAB=1`).

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(clippy::disallowed_methods, reason = "two real processes are waited for in real time")]

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A process that ends with the test, and what it left behind.
struct Running(Child);

impl Running {
    fn start(arguments: &[&str]) -> Self {
        Self(Command::new(env!("CARGO_BIN_EXE_palisade-san")).args(arguments).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory that is gone at the end, and its mounts before it.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        for left in ["target/target", "staging"] {
            let _ = Command::new("umount").args(["-q", "-l"]).arg(self.0.join(left)).status();
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn csi_sanity() {
    if std::env::var_os("PALISADE_LAB").is_none_or(|set| set != "1") {
        eprintln!(
            "SKIPPED, NOTHING WAS TESTED: csi-sanity needs Go, its modules and root; say PALISADE_LAB=1 to run it"
        );
        return;
    }
    let place = Place(std::env::temp_dir().join(format!("palisade-sanity-{}", std::process::id())));
    std::fs::create_dir_all(&place.0).unwrap();
    let at = |name: &str| place.0.join(name).display().to_string();
    let (san, controller, node) = (at("san"), at("controller.sock"), at("node.sock"));
    let _controller = Running::start(&["controller", "--san", &san, "--socket", &controller]);
    let _node = Running::start(&["node", "--san", &san, "--socket", &node, "--node-id", "n1"]);
    for socket in [&controller, &node] {
        wait_for(Path::new(socket));
    }
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("sanity");
    let run = Command::new("go")
        .args(["test", "-count=1", "-v", "./..."])
        .current_dir(module)
        .envs([("SAN_CONTROLLER", &controller), ("SAN_NODE", &node), ("SAN_MOUNTS", &at(""))])
        .status()
        .expect("Go is needed to build csi-sanity");
    assert!(run.success(), "csi-sanity found something; what it was stands above");
    assert!(palisade_san::published(Path::new(&san)).unwrap().is_empty(), "it left volumes behind");
}

fn wait_for(socket: &Path) {
    let began = Instant::now();
    while UnixStream::connect(socket).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "nobody serves {}", socket.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}
