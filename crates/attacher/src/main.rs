//! The attacher as a program: a sidecar of a CSI driver's controller.

#![forbid(unsafe_code)]

use std::error::Error;
use std::future::Future;
use std::path::PathBuf;

use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Attaches and detaches the volumes of one CSI driver, in place of external-attacher
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The Unix socket of the CSI driver's controller
    #[arg(long, default_value = "/run/csi/socket")]
    csi_address: PathBuf,
    /// How to reach the API server; without it, as the surroundings say
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Write the log as JSON, one object per line
    #[arg(long)]
    log_json: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if arguments.log_json {
        log.json().init();
    } else {
        log.init();
    }
    let stop = told_to_stop()?;
    let client = client(arguments.kubeconfig).await?;
    Box::pin(palisade_attacher::run(client, &arguments.csi_address, stop)).await?;
    Ok(())
}

async fn client(kubeconfig: Option<PathBuf>) -> Result<kube::Client, Box<dyn Error>> {
    let mut config = match kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path)?;
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
        None => kube::Config::infer().await?,
    };
    // A request that is sent again behind our back takes minutes to fail, and carries an old decision; we decide anew.
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}

/// SIGTERM, as a kubelet sends it, or Ctrl-C.
fn told_to_stop() -> std::io::Result<impl Future<Output = ()> + Send> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
