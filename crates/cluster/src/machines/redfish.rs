//! Redfish, as far as power needs it: service root, sessions, one system, one action.
//!
//! Promise: codes and words as DMTF DSP0266 has them, so that a client written for real BMCs works here.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};

use std::collections::BTreeSet;

use super::{
    bmc::{Behaviour, Fate},
    machine::Switch,
};
use crate::{
    objects::text,
    truth::{Name, World},
};

/// A machine's front panel, as its Redfish service needs it: the embedded machines have one, and the lab's real ones.
pub trait Panel {
    /// The machine's name.
    fn name(&self) -> &str;
    /// Who may ask, and how they show it.
    fn login(&self) -> (String, String);
    /// The sessions that are open.
    fn sessions(&mut self) -> &mut Sessions;
    /// What the service says about its power.
    fn power(&mut self) -> &'static str;
    /// The UUID of the machine, and its serial number.
    fn identity(&self) -> (String, String);
    /// A reset: what became of it, and the code with which it is refused, if it is.
    fn reset(&mut self, switch: Switch) -> (Fate, StatusCode);
}

/// The sessions of a Redfish service.
#[derive(Debug, Default)]
pub struct Sessions {
    open: BTreeSet<String>,
    made: u64,
}

/// An embedded machine.
struct Embedded<'a> {
    world: &'a mut World,
    node: &'a Name,
    /// For a machine that has no BMC.
    none: Sessions,
}

impl Panel for Embedded<'_> {
    fn name(&self) -> &str {
        self.node
    }

    fn login(&self) -> (String, String) {
        self.world.bmcs.get(self.node).map(|bmc| (bmc.user.clone(), bmc.password.clone())).unwrap_or_default()
    }

    fn sessions(&mut self) -> &mut Sessions {
        match self.world.bmcs.get_mut(self.node) {
            Some(bmc) => &mut bmc.sessions,
            None => &mut self.none,
        }
    }

    fn power(&mut self) -> &'static str {
        let (Some(machine), Some(bmc)) = (self.world.machines.get(self.node), self.world.bmcs.get_mut(self.node))
        else {
            return "";
        };
        let power = bmc.reports(machine.power, self.world.now);
        if power == "Off" {
            bmc.said_off = Some(self.world.now);
        }
        power
    }

    fn identity(&self) -> (String, String) {
        let machine = self.world.machines.get(self.node);
        machine.map(|machine| (machine.uuid.clone(), machine.serial.clone())).unwrap_or_default()
    }

    fn reset(&mut self, switch: Switch) -> (Fate, StatusCode) {
        let refusal = self.world.bmcs.get(self.node).and_then(|bmc| match bmc.behaviour {
            Behaviour::Refuses(code) => StatusCode::from_u16(code).ok(),
            _ => None,
        });
        (self.world.tell_bmc(self.node, switch), refusal.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

/// The path of a machine's system.
pub fn system_path(node: &str) -> String {
    format!("/redfish/v1/Systems/{node}")
}

const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
const RESETS: [(&str, Switch); 7] = [
    ("On", Switch::On),
    ("ForceOn", Switch::On),
    ("ForceOff", Switch::ForceOff),
    ("GracefulShutdown", Switch::GracefulOff),
    ("ForceRestart", Switch::Restart),
    ("PowerCycle", Switch::Restart),
    ("PushPowerButton", Switch::On),
];

/// Whether a request is to switch something.
pub fn is_reset<B>(request: &Request<B>) -> bool {
    request.uri().path().ends_with("/Actions/ComputerSystem.Reset")
}

pub(crate) fn embedded(world: &mut World, node: &Name, request: &Request<Bytes>) -> Response<Bytes> {
    answer(&mut Embedded { world, node, none: Sessions::default() }, request)
}

/// What a machine's Redfish service answers.
pub fn answer(panel: &mut impl Panel, request: &Request<Bytes>) -> Response<Bytes> {
    let path = request.uri().path().trim_end_matches('/');
    let system = system_path(panel.name());
    let reset = format!("{system}/Actions/ComputerSystem.Reset");
    let method = request.method();

    if path == "/redfish" {
        return say(StatusCode::OK, &json!({"v1": "/redfish/v1/"}));
    }
    if path == "/redfish/v1" {
        return say(StatusCode::OK, &service_root());
    }
    if path == SESSIONS && method == Method::POST {
        return log_in(panel, request);
    }
    if !is_known(panel, request) {
        return complain(StatusCode::UNAUTHORIZED, "NoValidSession", "There is no valid session established.");
    }
    match path {
        "/redfish/v1/Systems" if method == Method::GET => {
            let members = json!([{"@odata.id": system}]);
            say(StatusCode::OK, &json!({"Members": members, "Members@odata.count": 1}))
        }
        _ if path == system && method == Method::GET => say(StatusCode::OK, &show(panel)),
        _ if path == reset && method == Method::POST => perform(panel, request.body()),
        _ if path.starts_with(SESSIONS) && method == Method::DELETE => {
            let token = path.rsplit('/').next().unwrap_or_default();
            panel.sessions().open.remove(token);
            empty(StatusCode::NO_CONTENT)
        }
        _ if path == system || path == reset || path == "/redfish/v1/Systems" => {
            complain(StatusCode::METHOD_NOT_ALLOWED, "OperationNotAllowed", "The HTTP method is not allowed.")
        }
        _ => complain(StatusCode::NOT_FOUND, "ResourceMissingAtURI", "The resource at the URI was not found."),
    }
}

fn service_root() -> Value {
    json!({
        "@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "Id": "RootService",
        "Name": "Root Service", "RedfishVersion": "1.15.0", "Systems": {"@odata.id": "/redfish/v1/Systems"},
        "SessionService": {"@odata.id": "/redfish/v1/SessionService"}, "Links": {"Sessions": {"@odata.id": SESSIONS}},
    })
}

fn show(panel: &mut impl Panel) -> Value {
    let (power, (uuid, serial)) = (panel.power(), panel.identity());
    let (name, path) = (panel.name(), system_path(panel.name()));
    let names: Vec<&str> = RESETS.iter().map(|(name, _)| *name).collect();
    json!({
        "@odata.id": path, "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem", "Id": name,
        "Name": name, "PowerState": power, "UUID": uuid,
        "SerialNumber": serial, "SystemType": "Physical", "Status": {"State": "Enabled", "Health": "OK"},
        "Actions": {"#ComputerSystem.Reset": {
            "target": format!("{path}/Actions/ComputerSystem.Reset"), "ResetType@Redfish.AllowableValues": names,
        }},
    })
}

fn perform(panel: &mut impl Panel, body: &[u8]) -> Response<Bytes> {
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let name = text(&asked, "/ResetType");
    let Some((_, switch)) = RESETS.iter().find(|(known, _)| *known == name) else {
        let why = format!("The value '{name}' for the parameter ResetType is not in the list of acceptable values.");
        return complain(StatusCode::BAD_REQUEST, "ActionParameterNotSupported", &why);
    };
    match panel.reset(*switch) {
        (Fate::Refused, code) => complain(code, "GeneralError", "A general error has occurred."),
        // Accepted, but not yet done: DSP0266 has a code for that.
        (Fate::Late, _) => empty(StatusCode::ACCEPTED),
        (Fate::Done | Fate::Ignored | Fate::Lost, _) => empty(StatusCode::NO_CONTENT),
    }
}

fn log_in(panel: &mut impl Panel, request: &Request<Bytes>) -> Response<Bytes> {
    let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let (user, password) = panel.login();
    if text(&asked, "/UserName") != user || text(&asked, "/Password") != password {
        return complain(StatusCode::UNAUTHORIZED, "ResourceAtUriUnauthorized", "Access was denied.");
    }
    let sessions = panel.sessions();
    sessions.made += 1;
    let token = format!("session-{}", sessions.made);
    sessions.open.insert(token.clone());
    let mut response = say(StatusCode::CREATED, &json!({"@odata.id": format!("{SESSIONS}/{token}"), "Id": token}));
    let headers = response.headers_mut();
    if let Ok(value) = token.parse() {
        headers.insert("x-auth-token", value);
    }
    if let Ok(value) = format!("{SESSIONS}/{token}").parse() {
        headers.insert(header::LOCATION, value);
    }
    response
}

fn is_known(panel: &mut impl Panel, request: &Request<Bytes>) -> bool {
    let (user, password) = panel.login();
    let sent = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let basic = format!("Basic {}", base64(format!("{user}:{password}").as_bytes()));
    sent("authorization") == Some(&*basic)
        || sent("x-auth-token").is_some_and(|token| panel.sessions().open.contains(token))
}

fn say(code: StatusCode, body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn empty(code: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = code;
    response
}

fn complain(code: StatusCode, message: &str, why: &str) -> Response<Bytes> {
    let info = json!([{"MessageId": format!("Base.1.15.{message}"), "Message": why}]);
    let error = json!({"code": format!("Base.1.15.{message}"), "message": why, "@Message.ExtendedInfo": info});
    say(code, &json!({"error": error}))
}

/// RFC 4648, as Basic authentication has it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[((word >> (18 - 6 * place)) & 63) as usize];
            out.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_as_the_rfc_has_it() {
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
        assert_eq!(base64(b"fence:secret-n1"), "ZmVuY2U6c2VjcmV0LW4x");
    }
}
