//! A PDU that speaks SNMP: snmpd of Net-SNMP, whose outlets are files. APC's numbers and Eaton's lead to the same outlets.

use std::process::{Child, Command as Process, Stdio};
use std::time::Duration;

use palisade_devices::agent::Parameters;

use crate::{Place, free_port, is_installed, parameters, search_path};

/// A PDU of ours alone, with eight outlets. It ends with the test.
pub(crate) struct Pdu {
    process: Child,
    place: Place,
    pub(crate) port: u16,
}

/// For a machine that is busy.
pub(crate) const PATIENT: [(&str, &str); 3] =
    [("shell_timeout", "30"), ("login_timeout", "30"), ("power_timeout", "30")];

const APC: &str = ".1.3.6.1.4.1.318.1.1.12.3";
const EATON: &str = ".1.3.6.1.4.1.534.6.6.6.1.2.2.1";

impl Pdu {
    /// Started, with every outlet on; `model` is what it says that it is. Nothing where a program is missing.
    pub(crate) async fn start(name: &str, model: &str) -> Option<Self> {
        let there = is_installed("snmpd", "snmpd")
            && is_installed("snmpget", "snmp")
            && is_installed("fence_apc_snmp", "fence-agents");
        if !there {
            return None;
        }
        let (place, port) = (Place::new(&format!("pdu-{name}")), free_port());
        let at = place.path().display().to_string();
        for outlet in 1..=8 {
            place.write(&format!("outlet{outlet}"), "on");
        }
        place.write("outlets.py", &OUTLETS.replace("@APC@", APC).replace("@EATON@", EATON).replace("@AT@", &at));
        place.write(
            "snmpd.conf",
            &format!(
                "agentaddress udp:127.0.0.1:{port}\nrwcommunity private 127.0.0.1\nsysobjectid {model}\n\
                 pass_persist {APC} /usr/bin/env python3 -u {at}/outlets.py\n\
                 pass_persist {EATON} /usr/bin/env python3 -u {at}/outlets.py\n"
            ),
        );
        let process = Process::new("snmpd")
            .env("PATH", search_path())
            .env("SNMP_PERSISTENT_DIR", &at)
            .env("MIBS", "")
            .args(["-f", "-Lf", &format!("{at}/snmpd.log"), "-C", "-c", &format!("{at}/snmpd.conf")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pdu = Self { process, place, port };
        pdu.answers().await;
        Some(pdu)
    }

    /// Waits for both programs behind it, which start when they are first asked.
    async fn answers(&self) {
        for _ in 0..100 {
            let asked = Process::new("snmpget")
                .args(["-v", "1", "-c", "private", "-t", "1", "-r", "0", &format!("127.0.0.1:{}", self.port)])
                .args([format!("{APC}.5.1.1.4.1"), format!("{EATON}.3.0")])
                .output()
                .unwrap();
            if asked.status.success() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("snmpd does not answer: {}", self.place.read("snmpd.log"));
    }

    /// The outlet's own record.
    pub(crate) fn outlet(&self, number: u32) -> String {
        self.place.read(&format!("outlet{number}"))
    }

    pub(crate) fn told(&self) -> Parameters {
        let port = self.port.to_string();
        let mut told =
            parameters(&[("ip", "127.0.0.1"), ("ipport", &port), ("snmp_version", "2c")], &[("community", "private")]);
        told.plain.extend(PATIENT.map(|(name, value)| (name.to_owned(), value.to_owned())));
        told
    }
}

impl Drop for Pdu {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The outlets, in the words that snmpd has for such programs.
const OUTLETS: &str = r#"
import sys

APC, EATON, AT = "@APC@", "@EATON@", "@AT@"

def numbers(name):
    return tuple(int(part) for part in name.strip().strip(".").split("."))

def is_on(outlet):
    with open(f"{AT}/outlet{outlet}") as file:
        return file.read().strip() == "on"

rows = {}
for outlet in range(1, 9):
    on = lambda outlet=outlet: is_on(outlet)
    rows[numbers(f"{APC}.3.1.1.4.{outlet}")] = ("integer", lambda on=on: 1 if on() else 2, outlet)
    rows[numbers(f"{APC}.5.1.1.2.{outlet}")] = ("string", lambda outlet=outlet: f"outlet{outlet}", None)
    rows[numbers(f"{APC}.5.1.1.4.{outlet}")] = ("integer", lambda on=on: 1 if on() else 2, None)
    rows[numbers(f"{EATON}.1.{outlet - 1}")] = ("integer", lambda outlet=outlet: outlet - 1, None)
    rows[numbers(f"{EATON}.3.{outlet - 1}")] = ("integer", lambda on=on: 1 if on() else 0, outlet)
order = sorted(rows)

def line():
    return sys.stdin.readline()

while True:
    word = line()
    if not word:
        break
    word = word.strip()
    if word == "PING":
        answer = ["PONG"]
    elif word in ("get", "getnext"):
        wanted = numbers(line())
        if word == "getnext":
            wanted = next((row for row in order if row > wanted), None)
        if wanted in rows:
            answer = ["." + ".".join(map(str, wanted)), rows[wanted][0], str(rows[wanted][1]())]
        else:
            answer = ["NONE"]
    elif word == "set":
        wanted, value = numbers(line()), line().split()[-1]
        outlet = rows.get(wanted, (None, None, None))[2]
        if outlet is None:
            answer = ["not-writable"]
        else:
            with open(f"{AT}/outlet{outlet}", "w") as file:
                file.write("on" if value == "1" else "off")
            answer = ["DONE"]
    else:
        # An empty line follows a set, and nobody waits for an answer.
        continue
    print("\n".join(answer), flush=True)
"#;
