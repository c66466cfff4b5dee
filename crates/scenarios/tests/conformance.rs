//! The same checks on the embedded cluster, in virtual time, and on a real one, where there is one.
//!
//! `PALISADE_CONFORMANCE_KUBECONFIG=file cargo test -p palisade-scenarios --test conformance real` asks the cluster of that file.
//! It has to have a controller manager, and no FencePolicy; checks leave nothing behind but our definitions.
//! `PALISADE_CONFORMANCE_FILTER=watches/` plays those alone whose group and name contain it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::env;

use kube::config::{KubeConfigOptions, Kubeconfig};
use palisade_cluster::api::Server;
use palisade_cluster::{Cluster, Shape};
use palisade_scenarios::conformance::{self, Report};

#[test]
fn the_embedded_api_is_as_the_checks_say() {
    embedded(async |client| conformance::run(client, &filter()).await);
}

#[test]
fn the_embedded_controllers_are_as_the_checks_say() {
    embedded(async |client| conformance::run_controllers(client, &filter()).await);
}

#[test]
fn the_embedded_api_refuses_every_bad_object() {
    embedded(async |client| conformance::run_bad_objects(client).await);
}

#[test]
fn a_real_cluster_is_as_the_checks_say() {
    real(async |client| conformance::run(client, &filter()).await);
}

#[test]
fn a_real_cluster_s_controllers_are_as_the_checks_say() {
    real(async |client| conformance::run_controllers(client, &filter()).await);
}

#[test]
fn a_real_cluster_refuses_every_bad_object() {
    real(async |client| conformance::run_bad_objects(client).await);
}

#[test]
fn every_check_has_a_name_of_its_own_and_says_what_it_shows() {
    let checks = [conformance::all(), conformance::controllers()].concat();
    let names: BTreeSet<String> = checks.iter().map(|check| format!("{check:?}")).collect();
    let words: BTreeSet<&str> = checks.iter().map(|check| check.about).collect();
    assert_eq!((names.len(), words.len()), (checks.len(), checks.len()), "two checks have one name or one sentence");
    assert!(conformance::all().len() >= 120, "only {} checks", conformance::all().len());
}

fn filter() -> String {
    env::var("PALISADE_CONFORMANCE_FILTER").unwrap_or_default()
}

fn judge(report: &Report) {
    println!("{report}");
    // A filter may leave a table empty.
    assert!(report.is_good() || (report.outcomes.is_empty() && !filter().is_empty()), "not as the checks say");
}

fn embedded(run: impl AsyncFnOnce(kube::Client) -> Report) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let report = runtime.block_on(async {
        let cluster = Cluster::up(&Shape { nodes: 0, ..Shape::default() }).await;
        // A server that has run for a while does not remember its first day.
        cluster.api().compact(cluster.api().revision());
        run(Server::new(cluster.api().clone()).client("conformance")).await
    });
    judge(&report);
}

fn real(run: impl AsyncFnOnce(kube::Client) -> Report) {
    let Ok(file) = env::var("PALISADE_CONFORMANCE_KUBECONFIG") else {
        eprintln!("SKIPPED: set PALISADE_CONFORMANCE_KUBECONFIG to the kubeconfig of a real cluster to ask it, too");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(async {
        let config = Kubeconfig::read_from(file).unwrap();
        let mut config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        // A watch may be silent for longer than a client's patience is by default.
        config.read_timeout = None;
        // A refusal is what many checks ask for: it must not be asked for again and again.
        config.default_retry = false;
        run(kube::Client::try_from(config).unwrap()).await
    });
    judge(&report);
}
