//! Operator / ready: everything that has to be there before the operator watches anything.
//!
//! Each of it can come later, by itself or by somebody's hand: it is waited for, and what is missing is said once, again when it is
//! something else, and now and then for those who only see the end of a log.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::version::Info;
use kube::api::Api;
use palisade_api::{FencePolicy, names};
use tokio::time::{Instant, sleep, timeout};

use super::connect::Connection;
use super::{allowed, kinds};

/// How soon is looked again.
const AGAIN: Duration = Duration::from_secs(3);
/// How soon the same is said again.
const SAY_AGAIN: Duration = Duration::from_mins(5);
/// How long one look may take.
const LOOK: Duration = Duration::from_secs(30);
/// The versions of Kubernetes that this is tested with, as their minor numbers.
const TESTED: std::ops::RangeInclusive<u32> = 33..=36;

/// What is missing, in a sentence that says how to put it right.
pub(super) struct Missing(pub(super) String);

/// Waits until everything is there.
pub(super) async fn everything(connection: &Connection, namespace: &str) {
    let client = &connection.client;
    let version = until(0, async || answers(connection).await).await;
    tracing::info!(url = connection.url, version = version.git_version, "the API server answers");
    if !minor(&version).is_some_and(|minor| TESTED.contains(&minor)) {
        tracing::warn!(
            version = version.git_version,
            "Palisade is tested with Kubernetes 1.33 to 1.36; with this version nobody knows"
        );
    }
    until(0, async || kinds::there(client).await).await;
    // An API server that has just started knows no roles yet: that is not worth a word.
    until(1, async || allowed::everything(client, namespace).await).await;
    say_of_policy(client).await;
}

/// Looks again and again; what is missing at the first so many looks is not said.
async fn until<T>(mut unsaid: u32, mut look: impl AsyncFnMut() -> Result<T, Missing>) -> T {
    let mut said: Option<(String, Instant)> = None;
    loop {
        let late = || Missing(format!("no answer of the API server within {LOOK:?}"));
        let why = match timeout(LOOK, look()).await.unwrap_or_else(|_| Err(late())) {
            Ok(found) => {
                if said.is_some() {
                    tracing::info!("what was missing is there");
                }
                return found;
            }
            Err(Missing(why)) => why,
        };
        if unsaid > 0 {
            unsaid -= 1;
        } else if said.as_ref().is_none_or(|(last, at)| *last != why || at.elapsed() >= SAY_AGAIN) {
            tracing::error!("{why}");
            said = Some((why, Instant::now()));
        }
        sleep(AGAIN).await;
    }
}

async fn answers(connection: &Connection) -> Result<Info, Missing> {
    connection.client.apiserver_version().await.map_err(|why| Missing(unanswered(&connection.url, why)))
}

/// Why the API server cannot be asked anything.
fn unanswered(url: &str, why: kube::Error) -> String {
    match why {
        kube::Error::Api(status) if status.code == 401 => format!(
            "the API server at {url} does not know us (401): the token or certificate of the kubeconfig or of the service \
             account has expired or belongs to another cluster; it is tried again"
        ),
        kube::Error::Api(status) => format!(
            "the API server at {url} answers {} and no version: {}; is that the right address? It is tried again",
            status.code, status.message
        ),
        other => {
            format!("the API server at {url} cannot be reached; it is tried again: {:#}", anyhow::Error::from(other))
        }
    }
}

/// Of `36` or of `36+`, as some distributions have it.
fn minor(version: &Info) -> Option<u32> {
    let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|_| version.major == "1")
}

/// Whoever leads makes it; that is worth a line, as it decides what is done at all.
async fn say_of_policy(client: &kube::Client) {
    let policies: Api<FencePolicy> = Api::all(client.clone());
    match timeout(LOOK, policies.get_opt(names::POLICY_NAME)).await {
        Ok(Ok(Some(policy))) => {
            tracing::info!(mode = ?policy.spec.mode, "the FencePolicy {} is there", names::POLICY_NAME);
        }
        Ok(Ok(None)) => tracing::info!(
            "there is no FencePolicy named {}; the replica that leads makes the default one, which enforces",
            names::POLICY_NAME
        ),
        Ok(Err(why)) => tracing::warn!(%why, "the FencePolicy could not be read"),
        Err(_) => tracing::warn!("the FencePolicy could not be read in time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_distributions_write_them() {
        let info =
            |major: &str, minor: &str| Info { major: major.to_owned(), minor: minor.to_owned(), ..Info::default() };
        assert_eq!(minor(&info("1", "36")), Some(36));
        assert_eq!(minor(&info("1", "33+")), Some(33));
        assert_eq!(minor(&info("2", "33")), None);
        assert_eq!(minor(&info("1", "")), None);
    }
}
