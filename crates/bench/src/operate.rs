//! Operate: the operator that `scale` measures, as a process of its own, against an API server and machines on loopback.

use std::io::{Read, stdin};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use palisade_core::ident::NodeName;
use palisade_core::snapshot::WitnessWord;
use palisade_devices::{Request, Response, Transport, Unreachable};
use palisade_operator::{Clock, Context, Native, Probe};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::clock::date;

/// Where the rest of the world is.
#[derive(clap::Args)]
pub(crate) struct Where {
    /// The API server
    #[arg(long)]
    api: SocketAddr,
    /// Kubelets and BMCs
    #[arg(long)]
    machines: SocketAddr,
}

/// Runs the operator until stdin ends.
pub(crate) fn run(there: &Where) -> Result<()> {
    ensure!(there.api.ip().is_loopback() && there.machines.ip().is_loopback(), "everything stays on this machine");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = stdin().read_to_end(&mut Vec::new());
        let _ = stop.send(());
    });
    runtime.block_on(async {
        let mut config = kube::Config::new(format!("http://{}", there.api).parse().context("the API's address")?);
        // The operator itself decides what is tried again.
        config.default_retry = false;
        let machines = Arc::new(Machines(there.machines));
        let context = Context {
            client: kube::Client::try_from(config)?,
            clock: Clock::new(date),
            identity: "palisade-0".to_owned(),
            namespace: palisade_api::names::SYSTEM_NAMESPACE.to_owned(),
            devices: Arc::new(Native::new(Arc::clone(&machines) as Arc<dyn Transport>)),
            probe: machines,
            act: palisade_operator::Act::default(),
            metrics: palisade_operator::Metrics::default(),
            reached: palisade_operator::Reached::default(),
        };
        palisade_operator::run(context, async move {
            let _ = stopped.await;
        })
        .await;
        Ok(())
    })
}

/// One question and one answer per connection, as a look at a port or at a BMC is one.
struct Machines(SocketAddr);

impl Machines {
    async fn ask(address: SocketAddr, question: Value) -> std::io::Result<Value> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(format!("{question}\n").as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(serde_json::from_slice(&answer)?)
    }
}

impl Probe for Machines {
    fn kubelet(&self, node: &NodeName, _at: Option<SocketAddr>) -> BoxFuture<'static, WitnessWord> {
        let (address, question) = (self.0, json!({"kubelet": node.as_str()}));
        Box::pin(async move {
            match Self::ask(address, question).await {
                Ok(answer) if answer["alive"] == true => WitnessWord::Alive,
                Ok(_) => WitnessWord::Silent,
                Err(_) => WitnessWord::Unknown,
            }
        })
    }
}

impl Transport for Machines {
    fn send(&self, request: Request) -> Pin<Box<dyn Future<Output = Result<Response, Unreachable>> + Send + '_>> {
        let (parts, body) = request.into_parts();
        let question = json!({
            "bmc": parts.uri.host().unwrap_or_default(),
            "method": parts.method.as_str(),
            "path": parts.uri.path(),
            "body": String::from_utf8_lossy(&body),
        });
        Box::pin(async move {
            let answer = Self::ask(self.0, question).await.map_err(|why| Unreachable(why.to_string()))?;
            let code = answer["status"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
            let response = http::Response::builder().status(code).body(Bytes::from(answer["body"].to_string()));
            response.map_err(|why| Unreachable(why.to_string()))
        })
    }
}
