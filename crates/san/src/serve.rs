//! Serve: the driver's services, on sockets.

use std::future::Future;
use std::io;
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use palisade_csi::messages::registration::{
    CSI_PLUGIN, InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse,
};
use palisade_csi::{Listener, Request, Services, Status};

use crate::node::Host;
use crate::truth::San;
use crate::{DRIVER, controller, identity};

/// What kubelet is told that we speak.
const CSI_VERSION: &str = "1.0.0";

/// Serves the SAN's controller until it is told to stop. Several may serve the same SAN.
pub async fn serve_controller(san: &Path, socket: &Path, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
    let san = San::open(san)?;
    let listener = Listener::bind(socket).await?;
    tracing::info!(driver = DRIVER, socket = %socket.display(), "the controller of the SAN is ready");
    listener.serve(identity::services(&san).and(controller::services(&san)), stop).await
}

/// Serves the driver on one node until it is told to stop. With a registration socket, in the directory that the kubelet
/// watches for plugins, the kubelet finds it there.
pub async fn serve_node(
    san: &Path,
    socket: &Path,
    node_id: &str,
    registration_socket: Option<&Path>,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    crate::register_node(san, node_id)?;
    let host = Host::new(San::open(san)?, node_id)?;
    let listener = Listener::bind(socket).await?;
    let services = identity::services(host.san()).and(crate::node::services(&host));
    // Last of all: whoever finds it there comes at once.
    let registrar = match registration_socket {
        Some(path) => Some((Listener::bind(path).await?, registration(&std::path::absolute(socket)?))),
        None => None,
    };
    tracing::info!(driver = DRIVER, node = node_id, socket = %socket.display(), "the node's side of the SAN is ready");
    let stop = stop.shared();
    let serving = listener.serve(services, stop.clone());
    let Some((registrar, info)) = registrar else { return serving.await };
    tokio::try_join!(serving, registrar.serve(info, stop)).map(drop)
}

/// Tells a kubelet who we are, and hears whether it took us in.
fn registration(socket: &Path) -> Services {
    let endpoint = socket.display().to_string();
    Services::new()
        .on(move |_: InfoRequest| {
            let info = PluginInfo {
                r#type: CSI_PLUGIN.to_owned(),
                name: DRIVER.to_owned(),
                endpoint: endpoint.clone(),
                supported_versions: vec![CSI_VERSION.to_owned()],
            };
            async move { Ok(info) }
        })
        .on(|status: RegistrationStatus| async move {
            if status.plugin_registered {
                tracing::info!(driver = DRIVER, "the kubelet has registered the driver");
            } else {
                tracing::error!(driver = DRIVER, why = status.error, "the kubelet refused the driver; it asks again");
            }
            Ok(RegistrationStatusResponse {})
        })
}

/// A function that blocks, as one that answers: it runs where blocking holds up nobody, and to its end even if the caller has
/// gone away.
pub(crate) fn answering<S, R>(
    of: &S,
    answer: fn(&S, &R) -> Result<R::Reply, Status>,
) -> impl Fn(R) -> BoxFuture<'static, Result<R::Reply, Status>> + Send + Sync + 'static
where
    S: Clone + Send + Sync + 'static,
    R: Request,
{
    let of = of.clone();
    move |request| {
        let of = of.clone();
        async move {
            let work = tokio::task::spawn_blocking(move || answer(&of, &request));
            work.await.unwrap_or_else(|why| Err(Status::internal(why.to_string())))
        }
        .boxed()
    }
}

/// A SAN that cannot be read or written.
pub(crate) fn out_of_order(why: &io::Error) -> Status {
    tracing::error!(%why, "the SAN is out of order");
    Status::internal(format!("the SAN is out of order: {why}"))
}
