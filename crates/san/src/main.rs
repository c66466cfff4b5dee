//! The SAN of the lab as a program: its controller, its side on a node, and its provisioner.

#![forbid(unsafe_code)]

use std::error::Error;
use std::future::Future;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// The shared storage of Palisade's lab: a CSI driver over a directory that all machines see
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the controller: makes volumes, and publishes them to nodes
    Controller {
        /// The directory that is the SAN
        #[arg(long)]
        san: PathBuf,
        /// The Unix socket to serve on
        #[arg(long)]
        socket: PathBuf,
    },
    /// Serve the driver on a node: mounts what is published to it
    Node {
        /// The directory that is the SAN
        #[arg(long)]
        san: PathBuf,
        /// The Unix socket to serve on
        #[arg(long)]
        socket: PathBuf,
        /// What the SAN calls this node
        #[arg(long)]
        node_id: String,
        /// A Unix socket in the directory in which the kubelet looks for plugins
        #[arg(long)]
        registration_socket: Option<PathBuf>,
    },
    /// Make PersistentVolumes for claims
    Provisioner {
        /// The Unix socket of the controller
        #[arg(long)]
        socket: PathBuf,
        /// How to reach the API server; without it, as the surroundings say
        #[arg(long)]
        kubeconfig: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let stop = told_to_stop()?;
    match Arguments::parse().command {
        Command::Controller { san, socket } => palisade_san::serve_controller(&san, &socket, stop).await?,
        Command::Node { san, socket, node_id, registration_socket } => {
            palisade_san::serve_node(&san, &socket, &node_id, registration_socket.as_deref(), stop).await?;
        }
        Command::Provisioner { socket, kubeconfig } => {
            Box::pin(palisade_san::provision::run(client(kubeconfig).await?, &socket, stop)).await;
        }
    }
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
    // A request that is sent again behind our back would take minutes to fail; we try again ourselves.
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}

/// SIGTERM, as a kubelet or a person with a unit file sends it, or Ctrl-C.
fn told_to_stop() -> std::io::Result<impl Future<Output = ()> + Send> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
