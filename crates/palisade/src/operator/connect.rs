//! Operator / connect: which cluster, as whom, and a client for it.
//!
//! Promise: what is wrong with a kubeconfig is said in one message, before anything else is tried: no waiting heals it.
//! The client tries nothing again by itself: what is tried again, and when, is decided where it is known what that means.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// How long the API server has to take a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// A cluster.
pub(super) struct Connection {
    /// The client.
    pub(super) client: Client,
    /// Where the API server is, for people.
    pub(super) url: String,
}

pub(super) async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> anyhow::Result<Connection> {
    let mut config = config(kubeconfig, context).await?;
    // kube repeats 429, 503 and 504 up to fifteen times, of a POST too.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    let url = config.cluster_url.to_string();
    let client = Client::try_from(config)
        .with_context(|| format!("the kubeconfig or service account for {url} cannot be used"))?;
    Ok(Connection { client, url })
}

async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> anyhow::Result<Config> {
    let options = KubeConfigOptions { context: context.map(ToOwned::to_owned), ..KubeConfigOptions::default() };
    if let Some(file) = kubeconfig {
        let at = file.display();
        let read = Kubeconfig::read_from(file).with_context(|| format!("the kubeconfig {at} cannot be read"))?;
        let config = Config::from_custom_kubeconfig(read, &options).await;
        return config.with_context(|| format!("the kubeconfig {at} names no cluster that can be used"));
    }
    // Whoever names one means it; the service account is no substitute.
    if context.is_some() || std::env::var_os("KUBECONFIG").is_some() {
        let config = Config::from_kubeconfig(&options).await;
        return config.context("the kubeconfig of KUBECONFIG, or of the home directory, cannot be used");
    }
    Config::infer().await.context(
        "there is no cluster: no --kubeconfig, no KUBECONFIG, none in the home directory, and this is no pod with a service account",
    )
}
