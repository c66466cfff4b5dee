//! ipmitool against the BMC of these tests: what the tests believe of the protocol, others believe too. It is the check of
//! cipher suite 17, which ipmi_sim does not have.

use std::process::{Command as Process, Output, Stdio};
use std::sync::{Arc, Mutex};

use palisade_devices::ipmi::{Ciphers, Ipmi, Suite, Udp};
use palisade_devices::{Command, Device, PowerState};
use tokio::net::UdpSocket;

use crate::bmc::Bmc;
use crate::ipmi_sim::is_installed;
use crate::{Yes, login};

/// The BMC on loopback, for as long as the test runs.
async fn on_loopback(bmc: Bmc) -> (Arc<Mutex<Bmc>>, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    let bmc = Arc::new(Mutex::new(bmc));
    let heard = Arc::clone(&bmc);
    tokio::spawn(async move {
        let mut buffer = [0; 1024];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let answer = heard.lock().unwrap().hear(&buffer[..length]);
            if let Some(answer) = answer {
                socket.send_to(&answer, from).await.unwrap();
            }
        }
    });
    (bmc, port)
}

async fn ipmitool(port: u16, suite: &'static str, password: &'static str, word: &'static str) -> Output {
    let run = move || {
        Process::new("ipmitool")
            .args(["-I", "lanplus", "-C", suite, "-H", "127.0.0.1", "-p", &port.to_string(), "-L", "OPERATOR"])
            .args(["-U", "fence", "-P", password, "chassis", "power", word])
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

#[tokio::test]
async fn ipmitool_speaks_both_suites_with_our_bmc() {
    if !is_installed("ipmitool", "ipmitool") {
        return;
    }
    for suite in ["3", "17"] {
        let (bmc, port) = on_loopback(Bmc::default()).await;
        let said =
            |output: Output| (String::from_utf8_lossy(&output.stdout).trim().to_owned(), output.status.success());
        let on = "Chassis Power is on".to_owned();
        assert_eq!(said(ipmitool(port, suite, "s3cret", "status").await), (on, true), "suite {suite}");
        assert_eq!(
            said(ipmitool(port, suite, "s3cret", "off").await),
            ("Chassis Power Control: Down/Off".to_owned(), true)
        );
        assert!(!bmc.lock().unwrap().power);
        assert_eq!(said(ipmitool(port, suite, "s3cret", "status").await).0, "Chassis Power is off");
        assert!(!said(ipmitool(port, suite, "wr0ng", "on").await).1);
        assert!(!bmc.lock().unwrap().power, "a stranger has switched it on");
    }
}

/// The same BMC as ipmitool's, over the same sockets.
#[tokio::test]
async fn the_driver_speaks_both_suites_over_udp() {
    for suite in [Suite::Three, Suite::Seventeen] {
        let (bmc, port) = on_loopback(Bmc::default()).await;
        let network = Arc::new(Udp::to("127.0.0.1", port));
        let device = Ipmi::new(network, login().with_ciphers(Ciphers::Only(suite)));
        assert_eq!(device.command("", Command::Off, &Yes::always()).await, Ok(()));
        assert_eq!(device.state("").await, Ok(PowerState::Off));
        assert!(!bmc.lock().unwrap().power);
    }
}
