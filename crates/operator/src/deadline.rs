//! Deadline: no request to the API server is waited for without end.
//!
//! A connection that neither answers nor breaks (a firewall that drops, a machine that froze) would otherwise hold up the one
//! fence that waits for it, for as long as the operating system likes. What became of the request is then not known, which is
//! what a broken connection says too: whoever asked looks again.

use std::time::Duration;

use kube::client::Body;

use crate::forbidden::{Asked, Forbidden};

/// From the request to the beginning of its answer; what follows (a watch, a long list) may take its time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The same client, which waits no longer than that, and notes what it is not allowed.
pub(crate) fn impatient(client: kube::Client, forbidden: Forbidden) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, forbidden) = (client.clone(), forbidden.clone());
        async move {
            let asked = Asked::of(&request);
            let answered = async { forbidden.heed(asked, client.send(request).await?).await };
            match tokio::time::timeout(ANSWERS_WITHIN, answered).await {
                Ok(answer) => answer,
                Err(_) => {
                    Err(tower::BoxError::from(format!("the API server did not answer within {ANSWERS_WITHIN:?}")))
                }
            }
        }
    });
    kube::Client::new(service, namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::Api;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_never_comes_is_an_error_in_time() {
        let silent = tower::service_fn(|_: http::Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, tower::BoxError>>()
        });
        let client = impatient(kube::Client::new(silent, "default"), Forbidden::told_to_nobody());
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client);
        let began = tokio::time::Instant::now();
        let why = nodes.get("n1").await.expect_err("nobody answers").to_string();
        assert_eq!(began.elapsed(), ANSWERS_WITHIN);
        assert!(why.contains("did not answer within 10s"), "{why}");
    }
}
