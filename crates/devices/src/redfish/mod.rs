//! Redfish: a BMC over HTTP.
//!
//! Promise (I6): `PoweringOff` is not off, `Paused` is not off, a missing or strange `PowerState` is not off; a service with
//! several systems is never guessed at: the plug names the system, or there is exactly one.
//! Never: `GracefulShutdown`, `ForceRestart` or `PowerCycle`: only ForceOff takes the memory away, and only On switches on.
//! Never: goes where the service points to, with our login, if that is not a path of its own; repeats a request that may have
//! an effect.

mod entry;
pub(crate) mod fuzz;
mod message;
mod session;
mod system;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use self::entry::Pass;
pub use self::session::{Login, Sessions};
use self::system::System;
use crate::transport::{Request, Response, Transport};
use crate::{Answer, Command, Device, Failure, Identity, Permit, PowerState};

/// One Redfish service.
pub struct Redfish {
    transport: Arc<dyn Transport>,
    /// Scheme and authority, such as `https://bmc-1.example:443`.
    base: String,
    credentials: Credentials,
    login: Login,
    sessions: Arc<Sessions>,
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
        let (login, sessions) = (Login::default(), Arc::default());
        Self { transport, base, credentials, login, sessions, identified: Mutex::default() }
    }

    /// At which one logs in like this.
    #[must_use]
    pub fn with_login(self, login: Login) -> Self {
        Self { login, ..self }
    }

    /// With what other drivers know about sessions.
    #[must_use]
    pub fn with_sessions(self, sessions: Arc<Sessions>) -> Self {
        Self { sessions, ..self }
    }

    /// Does `work`, and gives back whatever it took to log in.
    async fn call<T>(&self, work: impl AsyncFnOnce(&mut Pass) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut pass = self.enter().await?;
        let done = work(&mut pass).await;
        self.leave(pass).await;
        done
    }

    async fn get(&self, pass: &mut Pass, path: &str) -> Result<Value, Failure> {
        let mut answer = self.ask(pass, path).await?;
        if answer.status() == StatusCode::UNAUTHORIZED
            && let Some(other) = self.other_way(pass, &answer).await?
        {
            *pass = other;
            answer = self.ask(pass, path).await?;
        }
        match answer.status() {
            StatusCode::OK => serde_json::from_slice(answer.body())
                .map_err(|why| Failure::Unknown(format!("{path}: the answer is no JSON: {why}"))),
            status => Err(self.failed(&answer, &format!("GET {path}"), status)),
        }
    }

    async fn ask(&self, pass: &Pass, path: &str) -> Result<Response, Failure> {
        self.send(self.request(Method::GET, path, None, pass)?).await
    }

    async fn send(&self, request: Request) -> Result<Response, Failure> {
        self.transport.send(request).await.map_err(|why| Failure::Unknown(format!("{}: {why}", self.base)))
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>, pass: &Pass) -> Result<Request, Failure> {
        // Put behind the host, `@elsewhere` or `.elsewhere` would be another host.
        if !path.starts_with('/') {
            return Err(Failure::Refused(format!("{path:?} is no path of the service; it has to begin with /")));
        }
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(ACCEPT, "application/json")
            .header("OData-Version", "4.0");
        if let Some((name, shown)) = pass.header() {
            request = request.header(name, shown);
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

    /// What an answer that is none means. No service gets our password into an event by repeating it.
    fn failed(&self, answer: &Response, asked: &str, status: StatusCode) -> Failure {
        let (told, password) = (message::why(answer, asked), &self.credentials.password);
        let told = if password.is_empty() { told } else { told.replace(password.as_str(), "***") };
        refused_or_unknown(status, &told)
    }

    /// The system behind a plug.
    async fn system(&self, pass: &mut Pass, plug: &str) -> Result<System, Failure> {
        let path = match system::path(plug)? {
            Some(path) => path,
            None => System::only_one(&self.get(pass, system::SYSTEMS).await?)?,
        };
        System::read(&self.get(pass, &path).await?, &path)
    }

    async fn reset(&self, pass: &mut Pass, plug: &str, command: Command, permit: &dyn Permit) -> Result<(), Failure> {
        let identified = self.identified.lock().unwrap_or_else(PoisonError::into_inner).take();
        let system = match identified.filter(|(known, _)| known == plug) {
            Some((_, system)) => system,
            None => self.system(pass, plug).await?,
        };
        let (target, word) = system.reset(command)?;
        let body = json!({ "ResetType": word });
        let request = self.request(Method::POST, target, Some(&body), pass)?;
        let unknown = |why| Failure::Unknown(format!("{}: {why}", self.base));
        self.transport.open(request.uri()).await.map_err(unknown)?;
        // The last look at the clock is here, after everything that only prepares.
        permit.may_send()?;
        let answer = self.send(request).await?;
        let status = answer.status();
        if status.is_success() || message::nothing_to_do(&answer) {
            return Ok(());
        }
        match self.failed(&answer, word, status) {
            Failure::Refused(_) if self.is_so_already(pass, plug, command).await => Ok(()),
            why => Err(why),
        }
    }

    /// Many services refuse to switch off what is off, each in words of its own (iDRAC by PSU501, iLO by
    /// InvalidOperationForSystemState). A machine without power would then never be fenced. What counts is read back anyway.
    async fn is_so_already(&self, pass: &mut Pass, plug: &str, command: Command) -> bool {
        let wanted = match command {
            Command::Off => PowerState::Off,
            Command::On => PowerState::On,
        };
        self.system(pass, plug).await.is_ok_and(|system| system.power == wanted)
    }
}

impl Device for Redfish {
    fn command<'a>(&'a self, plug: &'a str, command: Command, permit: &'a dyn Permit) -> Answer<'a, ()> {
        Box::pin(self.call(async move |pass| self.reset(pass, plug, command, permit).await))
    }

    fn state<'a>(&'a self, plug: &'a str) -> Answer<'a, PowerState> {
        Box::pin(self.call(async move |pass| Ok(self.system(pass, plug).await?.power)))
    }

    fn identity<'a>(&'a self, plug: &'a str) -> Answer<'a, Identity> {
        Box::pin(self.call(async move |pass| {
            let system = self.system(pass, plug).await?;
            let identity = system.identity.clone();
            *self.identified.lock().unwrap_or_else(PoisonError::into_inner) = Some((plug.to_owned(), system));
            Ok(identity)
        }))
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
