//! The real kubectl against the embedded API server, on loopback.
//!
//! Without a kubectl on the path the stories are skipped, loudly; where `CI` is set that is a failure.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use palisade_cluster::{
    api::{
        Api, DeleteOptions, Key, Kind, Server, Settings,
        http::{Listening, write_kubeconfig},
    },
    clock::Clock,
};
use serde_json::{Value, json};

/// A cluster that kubectl can reach, in a folder of its own.
struct Terminal {
    api: Api,
    folder: PathBuf,
    runtime: tokio::runtime::Runtime,
}

impl Terminal {
    /// Nothing if there is no kubectl.
    fn open(story: &str) -> Option<Self> {
        if Command::new("kubectl").args(["version", "--client"]).stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("CI").is_none(), "no kubectl on the path");
            eprintln!("SKIPPED {story}: there is no kubectl on the path, so nothing was tried");
            return None;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("kubectl-{story}"));
        fs::create_dir_all(&folder).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let epoch = "2026-03-01T12:00:00Z".parse().unwrap();
        let api = runtime.block_on(async { Api::new(Clock::starting_at(epoch), &Settings::default()) });
        for crd in palisade_api::crds() {
            api.create(Kind::CUSTOM_RESOURCE_DEFINITION, serde_json::to_value(crd).unwrap()).unwrap();
        }
        let listening = runtime.block_on(Listening::on(0)).unwrap();
        write_kubeconfig(&folder.join("config"), listening.address()).unwrap();
        runtime.spawn(listening.serve(Server::new(api.clone())));
        Some(Self { api, folder, runtime })
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(line).env("KUBECONFIG", self.folder.join("config")).env("HOME", &self.folder);
        command
    }

    /// What kubectl writes; it has to succeed.
    fn run(&self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = self.command(&words).output().unwrap();
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {line}\n{out}{error}");
        out.into_owned()
    }

    /// What kubectl complains about; it has to fail.
    fn fail(&self, line: &[&str]) -> String {
        let output = self.command(line).output().unwrap();
        assert!(!output.status.success(), "kubectl {line:?} should fail");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn file(&self, name: &str, object: &Value) -> String {
        let file = self.folder.join(name);
        fs::write(&file, object.to_string()).unwrap();
        file.to_string_lossy().into_owned()
    }

    fn node(&self, name: &str, ready: &str) {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        let node = json!({"metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}},
            "status": {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.33.0"}}});
        self.api.create(Kind::NODE, node).unwrap();
    }
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0", "labels": {"app": "db"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "db:1"}]}})
}

fn fence() -> Value {
    json!({"apiVersion": "palisade.dev/v1alpha1", "kind": "NodeFence", "metadata": {"name": "n1"},
        "spec": {"nodeName": "n1"}})
}

/// The words of each line.
fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn get_shows_tables() {
    let Some(terminal) = Terminal::open("get") else { return };
    terminal.node("n1", "True");
    terminal.node("n2", "Unknown");
    let shown = terminal.run("get nodes");
    assert_eq!(words(&shown)[0], ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]);
    assert_eq!(words(&shown)[1][..3], ["n1", "Ready", "worker"]);
    assert_eq!(words(&shown)[2][..3], ["n2", "NotReady", "worker"]);
    assert!(terminal.run("get no -o wide").contains("KERNEL-VERSION"));
    assert_eq!(terminal.run("get node n1 -o jsonpath={.status.nodeInfo.kubeletVersion}"), "v1.33.0");
    assert!(terminal.run("get pods -A -o yaml").contains("kind: List"));
    assert!(terminal.run("api-resources").contains("nodefences"));
    assert!(terminal.run("version").contains("Server Version: v1.33"));
    assert!(terminal.fail(&["get", "node", "n9"]).contains("nodes \"n9\" not found"));
}

#[test]
fn an_object_lives_from_create_to_delete() {
    let Some(terminal) = Terminal::open("life") else { return };
    terminal.node("n1", "True");
    let file = terminal.file("pod.json", &pod());
    assert_eq!(terminal.run(&format!("create -f {file}")), "pod/db-0 created\n");
    assert_eq!(words(&terminal.run("get pods"))[1][..3], ["db-0", "0/1", "Pending"]);
    let described = terminal.run("describe pod db-0");
    assert!(described.contains("Node:") && described.contains("db:1"), "{described}");
    terminal.run("label pod db-0 tier=a");
    terminal.run("patch pod db-0 --type=merge -p {\"metadata\":{\"annotations\":{\"a\":\"b\"}}}");
    terminal.run("patch pod db-0 --type=json -p [{\"op\":\"test\",\"path\":\"/metadata/labels/tier\",\"value\":\"a\"},{\"op\":\"remove\",\"path\":\"/metadata/labels/tier\"}]");
    let key = Key::new(Kind::POD, "default", "db-0");
    let pod = terminal.api.get(&key).unwrap();
    assert_eq!(pod["metadata"]["labels"], json!({"app": "db"}));
    assert_eq!(pod["metadata"]["annotations"]["a"], "b");
    terminal.run("delete pod db-0 --wait=false");
    assert_eq!(words(&terminal.run("get pods"))[1][2], "Terminating");
    terminal.run("delete pod db-0 --force --grace-period=0");
    assert!(terminal.api.get(&key).is_none());
}

#[test]
fn our_own_kinds_are_shown_explained_checked_and_applied() {
    let Some(terminal) = Terminal::open("custom") else { return };
    let file = terminal.file("fence.json", &fence());
    assert!(terminal.run(&format!("create -f {file}")).contains("created"));
    let shown = terminal.run("get nodefence");
    assert_eq!(words(&shown)[1][0], "n1", "{shown}");
    assert!(terminal.run("describe nodefence n1").contains("Node Name"));
    assert!(terminal.run("explain nodefence.spec").contains("nodeName"));

    let mut typo = fence();
    typo["metadata"]["name"] = json!("n2");
    typo["spec"] = json!({"nodeName": "n2", "nodename": "n2"});
    let complaint = terminal.fail(&["create", "-f", &terminal.file("typo.json", &typo)]);
    assert!(complaint.contains("unknown field \"spec.nodename\""), "{complaint}");
    let wrong = json!({"apiVersion": "palisade.dev/v1alpha1", "kind": "NodeFence", "metadata": {"name": "n3"},
        "spec": {"nodeName": "n4"}});
    let complaint = terminal.fail(&["create", "-f", &terminal.file("wrong.json", &wrong)]);
    assert!(complaint.contains("a NodeFence has the name of its node"), "{complaint}");

    let mut resumed = fence();
    resumed["spec"]["admin"] = json!({"resume": 1});
    let file = terminal.file("resumed.json", &resumed);
    terminal.run(&format!("apply -f {file}"));
    let key = Key::cluster(terminal.api.kind("palisade.dev", "NodeFence").unwrap(), "n1");
    assert_eq!(terminal.api.get(&key).unwrap()["spec"]["admin"]["resume"], 1);
}

#[test]
fn watch_and_wait_see_what_happens() {
    let Some(terminal) = Terminal::open("watch") else { return };
    terminal.node("n1", "Unknown");
    let key = Key::cluster(Kind::NODE, "n1");
    let mut watch = terminal.command(&["get", "nodes", "--watch", "--no-headers"]);
    let watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let wait = terminal.command(&["wait", "--for=condition=Ready", "node/n1", "--timeout=20s"]).spawn().unwrap();
    let gone = terminal.command(&["wait", "--for=delete", "node/n1", "--timeout=20s"]).spawn().unwrap();

    // Real processes start in real time; what they wait for comes again and again until they have seen it.
    let mut wait = wait;
    terminal.runtime.block_on(async {
        for round in 0.. {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            if wait.try_wait().unwrap().is_some() {
                break;
            }
            assert!(round < 60, "kubectl wait sees nothing");
            if round == 2 {
                let ready = json!([{"type": "Ready", "status": "True"}]);
                terminal.api.update(&key, |node| node["status"]["conditions"] = ready).unwrap();
            }
        }
    });
    assert!(wait.wait().unwrap().success());
    terminal.api.delete(&key, &DeleteOptions::default()).unwrap();
    assert!(gone.wait_with_output().unwrap().status.success());

    let mut watch = watch;
    watch.kill().unwrap();
    let output = watch.wait_with_output().unwrap();
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    let states: Vec<&str> = words(&seen).into_iter().map(|line| line[1]).collect();
    assert_eq!(states[..2], ["NotReady", "Ready"], "{seen}");
}
