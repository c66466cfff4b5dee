//! A whole call to a Redfish service that answers anything: it never gets us to another host, never has a command sent twice, and
//! is told off only by the word for it.
#![no_main]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use palisade_devices::redfish::{Credentials, Redfish};
use palisade_devices::{Command, Device, Late, Permit, PowerState, Request, Response, Sent, Transport, Unreachable};
use tokio::runtime::Builder;

struct Always;

impl Permit for Always {
    fn may_send(&self) -> Result<(), Late> {
        Ok(())
    }
}

/// What is left to say, and what was asked.
#[derive(Default)]
struct Talk {
    rest: Vec<u8>,
    asked: usize,
    resets: usize,
    last: Vec<u8>,
}

struct Service(Mutex<Talk>);

impl Service {
    /// A line is one answer: a letter for the status, one for the headers, and the body.
    fn answer(&self, request: &Request) -> Option<Response> {
        assert_eq!(request.uri().host(), Some("bmc"), "our login went elsewhere");
        let mut talk = self.0.lock().expect("nobody panics");
        talk.asked += 1;
        assert!(talk.asked < 20, "no end of questions");
        if request.method() == http::Method::POST && request.body().starts_with(b"{\"ResetType\"") {
            talk.resets += 1;
        }
        let end = talk.rest.iter().position(|byte| *byte == b'\n').unwrap_or(talk.rest.len());
        let line: Vec<u8> = talk.rest.drain(..end).collect();
        if !talk.rest.is_empty() {
            talk.rest.remove(0);
        }
        let [status, headers, body @ ..] = line.as_slice() else { return None };
        talk.last = body.to_vec();
        let status = [200, 201, 204, 308, 400, 401, 404, 409, 500, 503].get(usize::from(status % 10)).copied()?;
        let mut answer = http::Response::builder().status(status);
        for (bit, (name, value)) in [
            ("www-authenticate", "Basic"),
            ("x-auth-token", "t0ken"),
            ("location", "https://elsewhere.example/redfish/v1/SessionService/Sessions/1"),
            ("location", "@elsewhere.example"),
        ]
        .into_iter()
        .enumerate()
        {
            if headers & (1 << bit) != 0 {
                answer = answer.header(name, value);
            }
        }
        answer.body(Bytes::copy_from_slice(body)).ok()
    }
}

impl Transport for Service {
    fn send(&self, request: Request) -> Sent<'_, Response> {
        let answer = self.answer(&request).ok_or_else(|| Unreachable("silence".to_owned()));
        Box::pin(std::future::ready(answer))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [manner, rest @ ..] = bytes else { return };
    let service = Arc::new(Service(Mutex::new(Talk { rest: rest.to_vec(), ..Talk::default() })));
    let login = Credentials { username: "fence".to_owned(), password: "s3cret".to_owned() };
    let device = Redfish::new(Arc::clone(&service) as Arc<dyn Transport>, "https://bmc", login);
    let plug = if manner & 1 == 0 { "" } else { "1" };
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    if manner & 2 == 0 {
        if runtime.block_on(device.state(plug)) == Ok(PowerState::Off) {
            let talk = service.0.lock().expect("nobody panics");
            let said = String::from_utf8_lossy(&talk.last).into_owned();
            // A session is closed after that, and whatever is said then is not kept apart here.
            assert!(talk.asked > 2 || said.contains("Off") || said.contains("\\u"), "off was not said: {said}");
        }
    } else {
        let told = runtime.block_on(device.command(plug, Command::Off, &Always));
        let resets = service.0.lock().expect("nobody panics").resets;
        assert!(resets <= 1, "a command was sent {resets} times");
        assert!(told.is_err() || resets == 1, "nothing was sent, and it is said to be taken");
    }
});
