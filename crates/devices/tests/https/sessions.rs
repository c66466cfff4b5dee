//! Sessions of Redfish, against a service in memory that has few of them and can be slow at any step.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use palisade_devices::redfish::{Credentials, Login, Redfish, Sessions};
use palisade_devices::{Command, Device, Failure, Late, Permit, PowerState, Request, Response, Sent, Transport};
use serde_json::{Value, json};
use tokio::time::timeout;

const SYSTEM: &str = "/redfish/v1/Systems/1";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

struct Always;

impl Permit for Always {
    fn may_send(&self) -> Result<(), Late> {
        Ok(())
    }
}

/// What a test sets, and looks up.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "faults of a service, each by itself")]
struct Service {
    /// Whether a password with a request is offered when somebody is turned away, and whether it is taken.
    offers_basic: bool,
    takes_basic: bool,
    has_no_sessions: bool,
    /// The method that is not answered.
    mute: Option<Method>,
    /// Tells whoever is refused what they said.
    echoes: bool,
    open: BTreeMap<String, String>,
    made: u32,
    asked: Vec<String>,
}

impl Service {
    fn answer(&mut self, request: &Request) -> Response {
        let (method, path) = (request.method(), request.uri().path());
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let by = match (header("authorization"), header("x-auth-token")) {
            (Some(_), None) => "basic",
            (None, Some(_)) => "token",
            (None, None) => "nothing",
            (Some(_), Some(_)) => "both",
        };
        self.asked.push(format!("{method} {path} by {by}"));
        let told: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let sessions = path.starts_with(SESSIONS);
        if sessions && self.has_no_sessions {
            return said(404, &json!({}));
        }
        if sessions && method == Method::POST {
            return self.log_in(&told);
        }
        let basic = self.takes_basic && header("authorization").as_deref() == Some("Basic ZmVuY2U6czNjcmV0");
        if !basic && !header("x-auth-token").is_some_and(|token| self.open.values().any(|known| *known == token)) {
            let mut answer = said(401, &json!({}));
            if self.offers_basic {
                answer.headers_mut().insert("www-authenticate", "Basic realm=\"bmc\"".parse().unwrap());
            }
            return answer;
        }
        match *method {
            Method::DELETE => {
                self.open.remove(path);
                said(204, &json!({}))
            }
            Method::POST => said(204, &json!({})),
            _ => said(200, &json!({"PowerState": "On", "Actions": {"#ComputerSystem.Reset": {"target": "/reset"}}})),
        }
    }

    fn log_in(&mut self, told: &Value) -> Response {
        if told != &json!({"UserName": "fence", "Password": "s3cret"}) {
            let words = if self.echoes { told.to_string() } else { String::new() };
            return said(401, &json!({"error": {"message": words}}));
        }
        if !self.open.is_empty() {
            return said(503, &json!({"error": {"message": "too many sessions"}}));
        }
        self.made += 1;
        let (path, token) = (format!("{SESSIONS}/{}", self.made), format!("t0ken-{}", self.made));
        self.open.insert(path.clone(), token.clone());
        let mut answer = said(201, &json!({}));
        answer.headers_mut().insert("x-auth-token", token.parse().unwrap());
        answer.headers_mut().insert("location", format!("https://bmc{path}").parse().unwrap());
        answer
    }
}

fn said(status: u16, body: &Value) -> Response {
    let mut answer = http::Response::new(Bytes::from(body.to_string()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    answer
}

/// The service behind a driver. It has room for one session.
#[derive(Clone, Default)]
struct Bmc(Arc<Mutex<Service>>, Arc<Sessions>);

impl Transport for Bmc {
    fn send(&self, request: Request) -> Sent<'_, Response> {
        let mut service = self.0.lock().unwrap();
        if service.mute.as_ref() == Some(request.method()) {
            service.asked.push(format!("{} in vain", request.method()));
            return Box::pin(std::future::pending());
        }
        let answer = service.answer(&request);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

impl Bmc {
    fn with(set: impl FnOnce(&mut Service)) -> Self {
        let bmc = Self::default();
        bmc.set(set);
        bmc
    }

    fn set(&self, set: impl FnOnce(&mut Service)) {
        set(&mut self.0.lock().unwrap());
    }

    /// A new driver each time, as the operator makes them; what is known of sessions is one for all.
    fn device(&self, password: &str, login: Login) -> Redfish {
        let credentials = Credentials { username: "fence".to_owned(), password: password.to_owned() };
        let device = Redfish::new(Arc::new(self.clone()), "https://bmc", credentials).with_login(login);
        device.with_sessions(Arc::clone(&self.1))
    }

    async fn state(&self) -> Result<PowerState, Failure> {
        self.device("s3cret", Login::default()).state("1").await
    }

    /// What it was asked since the last look.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }

    fn open(&self) -> usize {
        self.0.lock().unwrap().open.len()
    }
}

#[tokio::test]
async fn a_password_goes_with_each_request_where_that_is_taken() {
    let bmc = Bmc::with(|service| service.takes_basic = true);
    assert_eq!(bmc.state().await, Ok(PowerState::On));
    assert_eq!(bmc.asked(), [format!("GET {SYSTEM} by basic")]);
}

#[tokio::test]
async fn a_service_that_takes_no_password_with_a_request_is_asked_by_a_session_that_is_closed() {
    let bmc = Bmc::default();
    assert_eq!(bmc.state().await, Ok(PowerState::On));
    let (login, question) = (format!("POST {SESSIONS} by nothing"), format!("GET {SYSTEM} by token"));
    let goodbye = |number| format!("DELETE {SESSIONS}/{number} by token");
    assert_eq!(bmc.asked(), [format!("GET {SYSTEM} by basic"), login.clone(), question.clone(), goodbye(1)]);
    // The next one knows: a password that is turned away counts as an attempt to break in.
    assert_eq!(bmc.state().await, Ok(PowerState::On));
    assert_eq!(bmc.asked(), [login, question, goodbye(2)]);
    assert_eq!(bmc.open(), 0);
}

#[tokio::test]
async fn a_command_is_sent_once_by_a_session_that_was_there_before() {
    let bmc = Bmc::default();
    let device = bmc.device("s3cret", Login::BySession);
    assert_eq!(device.command("1", Command::Off, &Always).await, Ok(()));
    let asked = bmc.asked();
    assert_eq!(asked[2..], ["POST /reset by token".to_owned(), format!("DELETE {SESSIONS}/1 by token")]);
    assert_eq!(bmc.open(), 0);
    // What was read for the identity is not read again; the login of then is over, and a new one is not tried after the command.
    assert!(device.identity("1").await.is_ok());
    bmc.asked();
    assert_eq!(device.command("1", Command::Off, &Always).await, Ok(()));
    assert_eq!(bmc.asked().iter().filter(|asked| asked.starts_with("POST /reset")).count(), 1);
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_where_the_service_offers_to_take_it() {
    let bmc = Bmc::with(|service| service.offers_basic = true);
    let answer = bmc.device("wr0ng", Login::default()).state("1").await;
    assert!(matches!(answer, Err(Failure::Refused(_))), "{answer:?}");
    assert_eq!(bmc.asked(), [format!("GET {SYSTEM} by basic")]);
    // And never by a session where the template says so.
    let bmc = Bmc::default();
    assert!(bmc.device("s3cret", Login::ByRequest).state("1").await.is_err());
    assert_eq!(bmc.asked(), [format!("GET {SYSTEM} by basic")]);
}

#[tokio::test]
async fn a_service_that_repeats_a_password_does_not_get_it_told() {
    let bmc = Bmc::with(|service| service.echoes = true);
    let answer = bmc.device("wr0ng-s3cret", Login::BySession).state("1").await;
    let told = answer.unwrap_err().to_string();
    assert!(told.contains("***") && !told.contains("wr0ng"), "{told}");
}

#[tokio::test]
async fn a_service_without_sessions_says_so() {
    let bmc = Bmc::with(|service| service.has_no_sessions = true);
    let told = bmc.state().await.unwrap_err().to_string();
    assert!(told.contains("has no sessions") && told.contains("set `session` to 0"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_does_not_wait_for_a_slow_goodbye_and_the_session_is_not_lost() {
    let bmc = Bmc::with(|service| service.mute = Some(Method::DELETE));
    let began = tokio::time::Instant::now();
    assert_eq!(bmc.state().await, Ok(PowerState::On));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(bmc.open(), 1);
    bmc.set(|service| service.mute = None);
    bmc.asked();
    // There is room for one: a second login would be turned away.
    assert_eq!(bmc.state().await, Ok(PowerState::On));
    assert_eq!(bmc.asked(), [format!("GET {SYSTEM} by token"), format!("DELETE {SESSIONS}/1 by token")]);
    assert_eq!(bmc.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_leaves_its_session_to_the_next_one() {
    let bmc = Bmc::default();
    assert_eq!(bmc.state().await, Ok(PowerState::On));
    bmc.set(|service| service.mute = Some(Method::GET));
    for _ in 0..5 {
        assert!(timeout(Duration::from_secs(25), bmc.state()).await.is_err());
    }
    assert_eq!((bmc.open(), bmc.0.lock().unwrap().made), (1, 2), "each try took a session");
    bmc.set(|service| service.mute = None);
    assert_eq!(bmc.state().await, Ok(PowerState::On));
    assert_eq!(bmc.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_the_service_has_ended_meanwhile_is_opened_anew() {
    let bmc = Bmc::with(|service| service.mute = Some(Method::DELETE));
    assert_eq!(bmc.state().await, Ok(PowerState::On));
    bmc.set(|service| {
        service.mute = None;
        service.open.clear();
    });
    assert_eq!(bmc.state().await, Ok(PowerState::On));
    assert_eq!(bmc.open(), 0);
}
