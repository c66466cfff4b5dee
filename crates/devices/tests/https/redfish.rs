//! The Redfish driver over HTTPS, against services that answer like real ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use palisade_devices::https::Https;
use palisade_devices::redfish::{Credentials, Redfish};
use palisade_devices::{Command, Device, Failure, Late, Permit, PowerState, Request, Response, Sent, Transport};
use serde_json::json;

use crate::LIMITS;
use crate::certificates::Authority;
use crate::server::{Manner, Server};

struct Always;

impl Permit for Always {
    fn may_send(&self) -> Result<(), Late> {
        Ok(())
    }
}

/// Answers in turn, and remembers what it was asked.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<(u16, String)>>,
    asked: Mutex<Vec<String>>,
}

impl Transport for Script {
    fn send(&self, request: Request) -> Sent<'_, Response> {
        self.asked.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
        let (status, body) =
            self.answers.lock().unwrap().pop_front().expect("somebody asks more than was written down");
        let mut answer = http::Response::new(Bytes::from(body));
        *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn open<'a>(&'a self, to: &'a http::Uri) -> Sent<'a, ()> {
        self.asked.lock().unwrap().push(format!("open {}", to.path()));
        Box::pin(std::future::ready(Ok(())))
    }
}

fn system(power: &str, target: &str) -> String {
    json!({ "PowerState": power, "Actions": { "#ComputerSystem.Reset": { "target": target } } }).to_string()
}

async fn told(answers: Vec<(u16, String)>, command: Command) -> (Result<(), Failure>, Vec<String>) {
    let script = Arc::new(Script { answers: Mutex::new(answers.into()), asked: Mutex::default() });
    let device = Redfish::new(Arc::clone(&script) as Arc<dyn Transport>, "https://bmc", Credentials::default());
    let answer = device.command("1", command, &Always).await;
    let asked = script.asked.lock().unwrap().clone();
    (answer, asked)
}

#[tokio::test]
async fn the_state_is_read_over_tls_with_the_login() {
    let authority = Authority::new();
    let server = Server::up(&authority.for_loopback(), Manner::Says(r#"{"PowerState":"Off"}"#)).await;
    let channel = Https::within(LIMITS).to(&authority.trust()).unwrap();
    let login = Credentials { username: "fence".to_owned(), password: "s3cret".to_owned() };
    let device = Redfish::new(Arc::new(channel), server.base(), login);
    assert_eq!(device.state("1").await, Ok(PowerState::Off));
    let asked = server.requests().remove(0).to_lowercase();
    for header in
        ["authorization: basic zmvuy2u6cznjcmv0", "accept: application/json", "odata-version: 4.0", "host: 127."]
    {
        assert!(asked.contains(header), "no {header:?} in: {asked}");
    }
}

#[tokio::test]
async fn the_way_is_open_before_the_clock_is_looked_at() {
    let answers = vec![(200, system("On", "/reset")), (204, String::new())];
    let (answer, asked) = told(answers, Command::Off).await;
    assert_eq!(answer, Ok(()));
    assert_eq!(asked, ["GET /redfish/v1/Systems/1", "open /reset", "POST /reset"]);
}

#[tokio::test]
async fn a_service_that_refuses_to_switch_off_what_is_off_has_as_good_as_taken_it() {
    let refusal = json!({ "error": { "@Message.ExtendedInfo": [{ "MessageId": "IDRAC.2.8.PSU501" }] } }).to_string();
    let script = |power| vec![(200, system("On", "/r")), (409, refusal.clone()), (200, system(power, "/r"))];
    assert_eq!(told(script("Off"), Command::Off).await.0, Ok(()));
    assert!(matches!(told(script("On"), Command::Off).await.0, Err(Failure::Refused(_))));
    assert!(matches!(told(script("PoweringOff"), Command::Off).await.0, Err(Failure::Refused(_))));
}

#[tokio::test]
async fn a_service_cannot_send_our_login_to_another_host() {
    for target in ["@elsewhere.example/", "https://elsewhere.example/", ".elsewhere.example"] {
        let (answer, asked) = told(vec![(200, system("On", target))], Command::Off).await;
        assert!(matches!(&answer, Err(Failure::Refused(why)) if why.contains("no path of the service")), "{answer:?}");
        assert_eq!(asked.len(), 1);
    }
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    for (status, words) in [
        (401, "put the Secret right"),
        (403, "right to control power"),
        (404, "does `plug` name one of /redfish/v1/Systems"),
        (308, "with a password nobody follows"),
    ] {
        let (answer, _) = told(vec![(status, String::new())], Command::Off).await;
        let said = answer.unwrap_err().to_string();
        assert!(said.contains(words) && said.contains(&status.to_string()), "{said}");
    }
}
