//! `palisade operator`: the operator on a real cluster.
//!
//! Promise: before it watches anything it says, in one line each, what is missing and how to put it right. What can heal by
//! itself, or by somebody else's hand, it waits for; what cannot ends it, with one message. Asked to stop, it finishes what it has
//! begun and gives up the lease, so that the next replica need not wait.
//!
//! | file | is |
//! |---|---|
//! | `connect` | the kubeconfig or the service account, and the client |
//! | `ready` | everything that has to be there first, one after the other |
//! | `kinds` | are the CRDs there, and as new as this operator? |
//! | `allowed` | may it do what it has to do? |
//! | `log` | text or JSON, and how much |

mod allowed;
mod connect;
mod kinds;
mod log;
mod ready;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use palisade_api::names;
use palisade_devices::https::Https;
use palisade_operator::http::Listening;
use palisade_operator::{Act, Clock, Context, KubeletPort, Metrics, Native, Reached};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Where metrics and health are asked for, unless somebody says otherwise.
const PORT: u16 = 8080;
/// The pause after a connection could not be taken.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// What a person can choose.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Kubeconfig; without it that of KUBECONFIG or the home directory, or the pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of the leader's Lease, of device Secrets and of our own requests; without it the pod's own, or palisade-system
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Who this replica is in the leader's Lease; without it POD_NAME or the host's name, and something random
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// Address of /metrics, /healthz and /readyz; without it port 8080 of every address
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Image of the pods that call fence agents: this program as `palisade act`, and the agents; without it no agent can be called
    #[arg(long, value_name = "IMAGE", env = "PALISADE_ACT_IMAGE")]
    act_image: Option<String>,
    /// When that image is pulled. What is pulled while a node is down may not come in time
    #[arg(long, value_name = "POLICY", default_value = "IfNotPresent", value_parser = ["Always", "IfNotPresent", "Never"])]
    act_pull: String,
    /// How logs are written. PALISADE_LOG says how much: a level such as `debug`, or `info,palisade::decided=debug`
    #[arg(long, value_enum, default_value_t = log::Form::Text, value_name = "FORM")]
    log: log::Form,
}

/// Runs the operator until it is asked to stop.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    log::start(options.log)?;
    // The client of kube asks for the process's own.
    drop(rustls::crypto::ring::default_provider().install_default());
    // One thread: it answers for its own health, and a second one would have nothing to do.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start the runtime")?;
    runtime.block_on(work(options))
}

async fn work(options: &Options) -> anyhow::Result<ExitCode> {
    let connection = connect::connect(options.kubeconfig.as_deref(), options.context.as_deref()).await?;
    let namespace = options.namespace.clone().unwrap_or_else(own_namespace);
    let (stop, metrics) = (signals()?, Metrics::default());
    let listening = listen(options.listen).await?;
    tracing::info!(address = %listening.address(), "tells /metrics, /healthz and /readyz");
    // It ends with the process.
    tokio::spawn(tell(listening, metrics.clone()));
    let identity = options.identity.clone().unwrap_or_else(identity);
    tokio::select! {
        biased;
        () = asked(stop.clone()) => return Ok(ExitCode::SUCCESS),
        () = ready::everything(&connection, &namespace) => {}
    }
    let context = Context {
        client: connection.client,
        clock: Clock::new(date),
        identity,
        namespace,
        devices: Arc::new(Native::over(Https::default())),
        probe: Arc::new(KubeletPort::new().context("failed to set up TLS")?),
        act: Act { image: options.act_image.clone(), pull: options.act_pull.clone() },
        metrics,
        reached: Reached::default(),
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        identity = context.identity,
        namespace = context.namespace,
        "Palisade runs"
    );
    palisade_operator::run(context, asked(stop)).await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// The date, for people.
#[expect(clippy::disallowed_methods, reason = "the edge of the system: what comes after takes it as an argument")]
fn date() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Becomes true when somebody asks us to stop.
fn signals() -> anyhow::Result<watch::Receiver<bool>> {
    let (sender, asked) = watch::channel(false);
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let (mut signals, sender) = (signal(kind).context("failed to listen for signals")?, sender.clone());
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                tracing::info!("asked to stop; what was begun comes to its end");
                let _ = sender.send(true);
            }
        });
    }
    Ok(asked)
}

async fn asked(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Every address of both families, where both are there.
async fn listen(address: Option<SocketAddr>) -> anyhow::Result<Listening> {
    let failed = |address: SocketAddr| {
        format!("failed to listen on {address}, for metrics and health; choose another with --listen")
    };
    if let Some(address) = address {
        return Listening::on(address).await.with_context(|| failed(address));
    }
    let any = |ip: IpAddr| SocketAddr::new(ip, PORT);
    if let Ok(listening) = Listening::on(any(Ipv6Addr::UNSPECIFIED.into())).await {
        return Ok(listening);
    }
    // A machine without IPv6.
    let any = any(Ipv4Addr::UNSPECIFIED.into());
    Listening::on(any).await.with_context(|| failed(any))
}

/// Tells whoever asks, whatever becomes of single connections: an operator that cannot be asked works on.
async fn tell(mut listening: Listening, metrics: Metrics) {
    loop {
        let address = listening.address();
        let Err(why) = listening.serve(metrics.clone()).await;
        tracing::error!(%address, %why, "nobody can ask for metrics or health");
        listening = loop {
            tokio::time::sleep(LISTEN_AGAIN).await;
            if let Ok(again) = Listening::on(address).await {
                break again;
            }
        };
    }
}

/// The namespace that our pod is in.
fn own_namespace() -> String {
    let file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
    let own = std::fs::read_to_string(file).ok().map(|name| name.trim().to_owned());
    own.filter(|name| !name.is_empty()).unwrap_or_else(|| names::SYSTEM_NAMESPACE.to_owned())
}

/// A name that no other process ever has: a pod whose container is started again keeps its own, and whatever the process before
/// it had begun may still be under way.
fn identity() -> String {
    let host = std::env::var("POD_NAME").or_else(|_| std::env::var("HOSTNAME"));
    let host = host.or_else(|_| std::fs::read_to_string("/proc/sys/kernel/hostname"));
    let host = host.ok().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let random = RandomState::new().build_hasher().finish() & 0xff_ffff;
    format!("{}-{random:06x}", host.as_deref().unwrap_or("palisade"))
}

#[cfg(test)]
mod tests {
    use super::identity;

    #[test]
    fn no_two_processes_have_one_name() {
        assert_ne!(identity(), identity());
    }
}
