//! Redfish: a BMC over HTTP.
//!
//! Promise (I6): `PoweringOff` is not off, `Paused` is not off, a missing or strange `PowerState` is not off; a service with
//! several systems is never guessed at: the plug names the system, or there is exactly one.
//! Never: `GracefulShutdown`, `ForceRestart` or `PowerCycle`: only ForceOff takes the memory away, and only On switches on.
//! Never: goes where the service points to, with our login, if that is not a path of its own.

mod message;
mod system;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use self::system::System;
use crate::transport::{Request, Response, Transport};
use crate::{Answer, Command, Device, Failure, Identity, Permit, PowerState};

/// The collection of systems.
const SYSTEMS: &str = "/redfish/v1/Systems";

/// One Redfish service.
pub struct Redfish {
    transport: Arc<dyn Transport>,
    /// Scheme and authority, such as `https://bmc-1.example:443`.
    base: String,
    credentials: Credentials,
    /// The system whose identity was asked for last: a command right after it does not read it again, as a slow BMC would
    /// use up the time in which the command may be sent.
    identified: Mutex<Option<(String, System)>>,
}

/// How we log in. Its Debug shows no secret.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, ***)", self.username)
    }
}

impl Redfish {
    /// The service at `base`.
    pub fn new(transport: Arc<dyn Transport>, base: impl Into<String>, credentials: Credentials) -> Self {
        let base = base.into().trim_end_matches('/').to_owned();
        Self { transport, base, credentials, identified: Mutex::default() }
    }

    async fn get(&self, path: &str) -> Result<Value, Failure> {
        let answer = self.send(Method::GET, path, None).await?;
        match answer.status() {
            StatusCode::OK => serde_json::from_slice(answer.body())
                .map_err(|why| Failure::Unknown(format!("{path}: the answer is no JSON: {why}"))),
            status => Err(refused_or_unknown(status, &message::why(&answer, &format!("GET {path}")))),
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Response, Failure> {
        let request = self.request(method, path, body)?;
        self.transport.send(request).await.map_err(|why| Failure::Unknown(format!("{}: {why}", self.base)))
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Request, Failure> {
        // Put behind the host, `@elsewhere` or `.elsewhere` would be another host.
        if !path.starts_with('/') {
            return Err(Failure::Refused(format!("{path:?} is no path of the service; it has to begin with /")));
        }
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(ACCEPT, "application/json")
            .header("OData-Version", "4.0");
        if !self.credentials.username.is_empty() {
            let Credentials { username, password } = &self.credentials;
            request = request.header(AUTHORIZATION, message::basic(username, password));
        }
        let body = match body {
            Some(value) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(value.to_string())
            }
            None => Bytes::new(),
        };
        request.body(body).map_err(|why| Failure::Refused(format!("{}{path} is no address: {why}", self.base)))
    }

    /// The system behind a plug.
    async fn system(&self, plug: &str) -> Result<System, Failure> {
        let path = if plug.starts_with('/') {
            plug.to_owned()
        } else if plug.is_empty() {
            System::only_one(&self.get(SYSTEMS).await?)?
        } else {
            format!("{SYSTEMS}/{plug}")
        };
        System::read(&self.get(&path).await?, &path)
    }

    async fn reset(&self, plug: &str, command: Command, permit: &dyn Permit) -> Result<(), Failure> {
        let identified = self.identified.lock().unwrap_or_else(PoisonError::into_inner).take();
        let system = match identified.filter(|(known, _)| known == plug) {
            Some((_, system)) => system,
            None => self.system(plug).await?,
        };
        let (target, word) = system.reset(command)?;
        let body = json!({ "ResetType": word });
        let request = self.request(Method::POST, target, Some(&body))?;
        let unknown = |why| Failure::Unknown(format!("{}: {why}", self.base));
        self.transport.open(request.uri()).await.map_err(unknown)?;
        // The last look at the clock is here, after everything that only prepares.
        permit.may_send()?;
        let answer = self.transport.send(request).await.map_err(unknown)?;
        let status = answer.status();
        if status.is_success() || message::nothing_to_do(&answer) {
            return Ok(());
        }
        let why = refused_or_unknown(status, &message::why(&answer, word));
        match why {
            Failure::Refused(_) if self.is_so_already(plug, command).await => Ok(()),
            why => Err(why),
        }
    }

    /// Many services refuse to switch off what is off, each in words of its own (iDRAC by PSU501, iLO by
    /// InvalidOperationForSystemState). A machine without power would then never be fenced. What counts is read back anyway.
    async fn is_so_already(&self, plug: &str, command: Command) -> bool {
        let wanted = match command {
            Command::Off => PowerState::Off,
            Command::On => PowerState::On,
        };
        self.system(plug).await.is_ok_and(|system| system.power == wanted)
    }
}

impl Device for Redfish {
    fn command<'a>(&'a self, plug: &'a str, command: Command, permit: &'a dyn Permit) -> Answer<'a, ()> {
        Box::pin(self.reset(plug, command, permit))
    }

    fn state<'a>(&'a self, plug: &'a str) -> Answer<'a, PowerState> {
        Box::pin(async move { Ok(self.system(plug).await?.power) })
    }

    fn identity<'a>(&'a self, plug: &'a str) -> Answer<'a, Identity> {
        Box::pin(async move {
            let system = self.system(plug).await?;
            let identity = system.identity.clone();
            *self.identified.lock().unwrap_or_else(PoisonError::into_inner) = Some((plug.to_owned(), system));
            Ok(identity)
        })
    }
}

/// A client error was refused; anything else may have been done all the same.
fn refused_or_unknown(status: StatusCode, told: &str) -> Failure {
    if status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT && status != StatusCode::TOO_MANY_REQUESTS {
        Failure::Refused(format!("{status}, {told}"))
    } else {
        Failure::Unknown(format!("{status}, {told}"))
    }
}
