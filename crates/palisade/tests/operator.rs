//! `palisade operator` as it is run: the built binary, against an API server on loopback; what it says, and how it ends.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use palisade_api::names::SYSTEM_NAMESPACE;
use palisade_cluster::api::http::{Listening, kubeconfig};
use palisade_cluster::api::{Api, Key, Kind, Server, Settings};
use palisade_cluster::clock::Clock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Long, for a machine that is busy; nobody waits for it when all goes well.
const PATIENCE: Duration = Duration::from_mins(1);

fn folder(story: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("operator-{story}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A kubeconfig for a port.
fn config(story: &str, address: SocketAddr) -> PathBuf {
    let file = folder(story).join("kubeconfig");
    std::fs::write(&file, kubeconfig(address)).unwrap();
    file
}

/// An API server.
struct Cluster {
    api: Api,
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

impl Cluster {
    fn new() -> Self {
        let epoch = "2026-03-01T12:00:00Z".parse().unwrap();
        let api = runtime().block_on(async { Api::new(Clock::starting_at(epoch), &Settings::default()) });
        for namespace in [SYSTEM_NAMESPACE, "kube-node-lease", "default"] {
            let _ = api.create(Kind::NAMESPACE, json!({ "metadata": { "name": namespace } }));
        }
        Self { api }
    }

    fn install_crds(&self) {
        for crd in palisade_api::crds() {
            self.api.create(Kind::CUSTOM_RESOURCE_DEFINITION, serde_json::to_value(crd).unwrap()).unwrap();
        }
    }

    /// Listens on a port; 0 for any.
    fn listen(&self, port: u16) -> SocketAddr {
        let (sender, address) = channel();
        let api = self.api.clone();
        std::thread::spawn(move || {
            runtime().block_on(async move {
                let listening = Listening::on(port).await.unwrap();
                sender.send(listening.address()).unwrap();
                listening.serve(Server::new(api)).await
            })
        });
        address.recv().unwrap()
    }

    fn leader(&self) -> Option<String> {
        let key = Key::new(Kind::LEASE, SYSTEM_NAMESPACE, "palisade-leader");
        let lease: Value = serde_json::to_value(&*self.api.get(&key)?).unwrap();
        Some(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
    }
}

/// A running operator and what it says.
struct Operator {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Operator {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_palisade"))
            .arg("operator")
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .env_remove("KUBECONFIG")
            .env_remove("PALISADE_LOG")
            .env("POD_NAME", "palisade-7")
            .env("HOME", folder("home"))
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || errors.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Self { child, lines, said: Vec::new() }
    }

    /// Waits for a line that has these words.
    fn says(&mut self, words: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("it never says {words:?}, but:\n{}", self.said.join("\n"));
            };
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    fn address(&mut self) -> SocketAddr {
        let line = self.says("tells /metrics");
        let address = line.split("address=").nth(1).unwrap().split_whitespace().next().unwrap();
        address.parse().unwrap()
    }

    fn ask_to_stop(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        self.said.extend(self.lines.iter());
        status
    }

    fn times(&self, words: &str) -> usize {
        self.said.iter().filter(|line| line.contains(words)).count()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn wait_until(what: &str, so: impl Fn() -> bool) {
    for _ in 0..600 {
        if so() {
            return;
        }
        // A test of a real process, in real time.
        std::thread::park_timeout(Duration::from_millis(100));
    }
    panic!("it never comes to this: {what}");
}

#[test]
fn it_becomes_ready_and_leads_and_gives_the_lease_up_when_it_is_asked_to_stop() {
    let cluster = Cluster::new();
    cluster.install_crds();
    let file = config("ready", cluster.listen(0));
    let mut operator = Operator::start(&["--kubeconfig", file.to_str().unwrap()]);
    let address = operator.address();
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 200"));
    operator.says("Palisade runs");
    wait_until("ready", || get(address, "/readyz").starts_with("HTTP/1.1 200"));
    wait_until("it leads", || get(address, "/metrics").contains("palisade_leads 1"));
    operator.says("the default one was made");
    let leader = cluster.leader().unwrap();
    assert!(leader.starts_with("palisade-7-"), "{leader}");
    operator.ask_to_stop();
    assert!(operator.end().success());
    assert_eq!(cluster.leader().as_deref(), Some(""), "the next one need not wait");
    assert_eq!(operator.times("there is no FencePolicy named cluster"), 1);
}

#[test]
fn it_waits_for_an_api_server_that_is_away_and_says_so_once() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = config("away", SocketAddr::from(([127, 0, 0, 1], port)));
    let mut operator = Operator::start(&["--kubeconfig", file.to_str().unwrap()]);
    let address = operator.address();
    let said = operator.says("cannot be reached");
    assert!(said.contains(&format!("127.0.0.1:{port}")) && said.contains("tried again"), "{said}");
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 200"), "it is well, and waits");
    assert!(get(address, "/readyz").starts_with("HTTP/1.1 503"));
    // Long enough for a second look.
    std::thread::park_timeout(Duration::from_secs(5));
    let cluster = Cluster::new();
    cluster.install_crds();
    cluster.listen(port);
    operator.says("what was missing is there");
    operator.says("Palisade runs");
    assert_eq!(operator.times("cannot be reached"), 1, "{}", operator.said.join("\n"));
}

#[test]
fn it_waits_for_its_crds_and_names_the_command_that_installs_them() {
    let cluster = Cluster::new();
    let file = config("crds", cluster.listen(0));
    let mut operator = Operator::start(&["--kubeconfig", file.to_str().unwrap(), "--log", "json"]);
    let said = operator.says("CRDs are missing");
    let line: Value = serde_json::from_str(&said).expect("it is JSON");
    let message = line["message"].as_str().unwrap();
    assert!(message.contains("NodeFence") && message.contains("palisade crds | kubectl apply --server-side -f -"));
    cluster.install_crds();
    operator.says("Palisade runs");
}

#[test]
fn while_it_waits_it_can_be_asked_to_stop() {
    let cluster = Cluster::new();
    let file = config("stop", cluster.listen(0));
    let mut operator = Operator::start(&["--kubeconfig", file.to_str().unwrap()]);
    operator.says("CRDs are missing");
    operator.ask_to_stop();
    assert!(operator.end().success());
}

#[test]
fn what_no_waiting_heals_ends_it_with_one_message() {
    let broken = folder("broken").join("kubeconfig");
    std::fs::write(&broken, "clusters: [").unwrap();
    let cluster = Cluster::new();
    let good = config("broken-context", cluster.listen(0));
    let (broken, good) = (broken.to_str().unwrap(), good.to_str().unwrap());
    for (arguments, words) in [
        (vec!["--kubeconfig", "/nonexistent/config"], "/nonexistent/config cannot be read"),
        (vec!["--kubeconfig", broken], "cannot be read"),
        (vec!["--kubeconfig", good, "--context", "other"], "names no cluster that can be used"),
        (vec![], "there is no cluster"),
    ] {
        let mut operator = Operator::start(&arguments);
        let status = operator.end();
        assert_eq!(status.code(), Some(1), "{arguments:?}: {}", operator.said.join("\n"));
        assert_eq!(operator.times(words), 1, "{arguments:?}: {}", operator.said.join("\n"));
    }
}
