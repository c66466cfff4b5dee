//! Embedded / agents / panel: a BMC as a fence agent meets it, by Redfish.
//!
//! Fence agents never look at the HTTP code of a reset, and take every state but `Off` for on; so does this.

use bytes::Bytes;
use http::{Method, Request, header};
use palisade_cluster::machines::bmc::BmcNetwork;
use serde_json::{Value, json};

use crate::embedded::install::base64;

/// A BMC behind an address.
pub(super) struct Panel {
    network: BmcNetwork,
    pub(super) host: String,
    login: String,
    system: Option<String>,
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nobody answered the connection.
    NoConnection,
    /// It answered something that is no state.
    NoState,
}

impl Panel {
    pub(super) fn new(network: BmcNetwork, ip: &str, user: &str, password: &str, system: Option<String>) -> Self {
        let host = ip.split(':').next().unwrap_or_default().to_owned();
        Self { network, host, login: format!("Basic {}", base64(&format!("{user}:{password}"))), system }
    }

    /// Whether it says that the machine is off.
    pub(super) async fn says_off(&self) -> Result<bool, Trouble> {
        let system = self.system().await?;
        let answer = self.ask(Method::GET, &system, Value::Null).await?;
        let state = answer.get("PowerState").and_then(Value::as_str).ok_or(Trouble::NoState)?;
        Ok(state == "Off")
    }

    /// Tells it to switch.
    pub(super) async fn switch(&self, reset: &str) -> Result<(), Trouble> {
        let system = self.system().await?;
        let path = format!("{system}/Actions/ComputerSystem.Reset");
        self.ask(Method::POST, &path, json!({ "ResetType": reset })).await.map(drop)
    }

    async fn system(&self) -> Result<String, Trouble> {
        if let Some(system) = &self.system {
            return Ok(system.clone());
        }
        let all = self.ask(Method::GET, "/redfish/v1/Systems", Value::Null).await?;
        let last = all.get("Members").and_then(Value::as_array).and_then(|members| members.last());
        let path = last.and_then(|member| member.get("@odata.id")).and_then(Value::as_str);
        path.map(ToOwned::to_owned).ok_or(Trouble::NoState)
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value, Trouble> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder().method(method).uri(format!("https://{}{path}", self.host));
        let request = request.header(header::AUTHORIZATION, &self.login).body(body);
        let answer = self.network.call(request.map_err(|_| Trouble::NoConnection)?).await;
        let answer = answer.map_err(|_| Trouble::NoConnection)?;
        Ok(serde_json::from_slice(answer.body()).unwrap_or_default())
    }
}
