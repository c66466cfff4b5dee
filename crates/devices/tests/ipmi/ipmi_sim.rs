//! The driver against ipmi_sim of OpenIPMI: a BMC that others wrote. It has cipher suite 3, and refuses 17.
//!
//! What reached the machine is read from the script that the BMC switches it with, and from ipmitool.

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use palisade_devices::ipmi::{Ciphers, GuidOrder, Ipmi, Limits, Login, Privilege, Suite, Udp};
use palisade_devices::{Command, Device, PowerState};

use crate::inventory::{Inventory, listed};
use crate::{Yes, login, refused, unknown};

/// Whether a program of others is there. On a build machine it has to be.
pub(crate) fn is_installed(program: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join(program).is_file()) {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "{program} is missing: install the package {package}");
    eprintln!("SKIPPED: {program} is not installed, so nothing was checked against it; install the package {package}");
    false
}

/// A port where nothing listens right now.
pub(crate) fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A BMC of ours alone. It ends with the test.
struct Simulator {
    process: Child,
    directory: PathBuf,
    port: u16,
}

impl Simulator {
    /// Started, with a machine that is on; nothing where ipmi_sim is missing.
    async fn start(name: &str) -> Option<Self> {
        if !is_installed("ipmi_sim", "openipmi") {
            return None;
        }
        let directory = std::env::temp_dir().join(format!("palisade-ipmi-{}-{name}", std::process::id()));
        fs::create_dir_all(directory.join("state")).unwrap();
        let (at, port) = (directory.display(), free_port());
        let write = |file: &str, text: &str| fs::write(directory.join(file), text).unwrap();
        write("power", "1");
        write("log", "");
        let fru = listed(&Inventory::of_a_server().bytes());
        write(
            "bmc.emu",
            &format!(
                "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x2b 9 8 0x9f 0x1291 0xf02\n\
                 mc_add_fru_data 0x20 0 256 data {fru}\nmc_enable 0x20\n"
            ),
        );
        write(
            "lan.conf",
            &format!(
                "name \"bmc\"\n\
                 set_working_mc 0x20\n\
                 startlan 1\n addr 127.0.0.1 {port}\n priv_limit admin\n \
                 allowed_auths_callback none md2 md5 straight\n allowed_auths_user none md2 md5 straight\n \
                 allowed_auths_operator none md2 md5 straight\n allowed_auths_admin none md2 md5 straight\n \
                 guid 4c1d7e0293aa4fcbb1c00cc47a123456\nendlan\n\
                 chassis_control \"/bin/sh {at}/chassis.sh\"\n\
                 user 2 true \"fence\" \"s3cret\" admin 10 none md2 md5 straight\n"
            ),
        );
        write(
            "chassis.sh",
            &format!(
                "op=$1; shift; echo \"$op $*\" >> {at}/log\n\
                 case \"$op\" in\n\
                 get) echo \"power:$(cat {at}/power)\";;\n\
                 set) if [ -e {at}/reject ]; then echo no; exit 1; fi; echo \"$2\" > {at}/power;;\n\
                 esac\nexit 0\n"
            ),
        );
        let process = Process::new("ipmi_sim")
            .args(["-c", &format!("{at}/lan.conf"), "-f", &format!("{at}/bmc.emu")])
            .args(["-s", &format!("{at}/state"), "-n"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let simulator = Self { process, directory, port };
        for _ in 0..100 {
            if simulator.device(login()).state("").await.is_ok() {
                fs::write(simulator.directory.join("log"), "").unwrap();
                return Some(simulator);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("ipmi_sim does not answer");
    }

    fn device(&self, login: Login) -> Ipmi {
        Ipmi::new(Arc::new(Udp::to("127.0.0.1", self.port)), login)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap()
    }

    fn power(&self) -> String {
        fs::read_to_string(self.directory.join("power")).unwrap().trim().to_owned()
    }

    /// What ipmitool says, if it is there.
    fn ipmitool(&self, words: &[&str]) -> Option<String> {
        if !is_installed("ipmitool", "ipmitool") {
            return None;
        }
        let told = Process::new("ipmitool")
            .args(["-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", &self.port.to_string(), "-L", "OPERATOR"])
            .args(["-U", "fence", "-P", "s3cret"])
            .args(words)
            .output()
            .unwrap();
        Some(String::from_utf8_lossy(&told.stdout).into_owned())
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[tokio::test]
async fn off_and_on_reach_the_machine() {
    let Some(simulator) = Simulator::start("power").await else { return };
    let only = login().with_ciphers(Ciphers::Only(Suite::Three));
    for device in [simulator.device(only), simulator.device(login())] {
        assert_eq!(device.state("").await, Ok(PowerState::On));
        let began = tokio::time::Instant::now();
        assert_eq!(device.command("", Command::Off, &Yes::always()).await, Ok(()));
        assert_eq!(device.state("").await, Ok(PowerState::Off));
        println!("off and status: {:?}", began.elapsed());
        assert_eq!(simulator.power(), "0");
        if let Some(said) = simulator.ipmitool(&["chassis", "power", "status"]) {
            assert_eq!(said.trim(), "Chassis Power is off");
        }
        assert_eq!(device.command("", Command::On, &Yes::always()).await, Ok(()));
        assert_eq!(device.state("").await, Ok(PowerState::On));
        assert_eq!(simulator.power(), "1");
    }
    let log = simulator.log();
    let sets: Vec<&str> = log.lines().filter(|line| line.starts_with("set")).collect();
    assert_eq!(sets, ["set power 0", "set power 1", "set power 0", "set power 1"]);
}

/// A state that another tool has brought about.
#[tokio::test]
async fn what_ipmitool_has_done_is_read() {
    let Some(simulator) = Simulator::start("other").await else { return };
    if simulator.ipmitool(&["chassis", "power", "off"]).is_none() {
        return;
    }
    assert_eq!(simulator.device(login()).state("").await, Ok(PowerState::Off));
}

#[tokio::test]
async fn a_wrong_password_or_name_is_refused() {
    let Some(simulator) = Simulator::start("login").await else { return };
    let state = async |name, password| simulator.device(Login::new(name, password).unwrap()).state("").await;
    let said = refused(state("fence", "wr0ng").await);
    assert!(said.contains("does not prove that it knows the password of \"fence\""), "{said}");
    let said = refused(state("nobody", "s3cret").await);
    assert!(said.contains("\"nobody\""), "{said}");
    assert_eq!(simulator.log(), "", "a stranger reached the machine");
}

/// Whether a user may be more than it is, ipmi_sim does not ask (nor does it stop ipmitool); what a session may do, it does.
#[tokio::test]
async fn a_session_without_the_privilege_reads_and_does_not_switch() {
    let Some(simulator) = Simulator::start("reader").await else { return };
    let device = simulator.device(login().with_privilege(Privilege::User));
    assert_eq!(device.state("").await, Ok(PowerState::On));
    let said = refused(device.command("", Command::Off, &Yes::always()).await);
    assert!(said.contains("this user may not do that") && said.contains("0xd4"), "{said}");
    assert_eq!(simulator.power(), "1");
}

#[tokio::test]
async fn a_command_that_the_machine_rejects_is_not_taken() {
    let Some(simulator) = Simulator::start("reject").await else { return };
    fs::write(simulator.directory.join("reject"), "").unwrap();
    let answer = simulator.device(login()).command("", Command::Off, &Yes::always()).await;
    assert!(answer.is_err(), "{answer:?}");
    assert_eq!(simulator.power(), "1");
}

#[tokio::test]
async fn the_guid_of_the_system_is_read() {
    let Some(simulator) = Simulator::start("guid").await else { return };
    let identity = simulator.device(login()).with_guid_order(GuidOrder::Rfc4122).identity("").await.unwrap();
    assert_eq!(identity.uuid.as_deref(), Some("4c1d7e02-93aa-4fcb-b1c0-0cc47a123456"));
}

/// What ipmitool reads of the same inventory is what we read.
#[tokio::test]
async fn the_serial_number_of_the_inventory_is_read() {
    let Some(simulator) = Simulator::start("serial").await else { return };
    let began = tokio::time::Instant::now();
    let identity = simulator.device(login()).with_serial().identity("").await.unwrap();
    println!("identity with the serial number: {:?}", began.elapsed());
    assert_eq!(identity.serial.as_deref(), Some("S-0815"));
    assert_eq!(simulator.device(login()).identity("").await.unwrap().serial, None, "nobody asked for it");
    if let Some(said) = simulator.ipmitool(&["fru", "print", "0"]) {
        assert!(said.lines().any(|line| line.contains("Product Serial") && line.ends_with(": S-0815")), "{said}");
    }
}

/// A BMC has few sessions, and ipmi_sim has 63.
#[tokio::test]
async fn sessions_are_given_back() {
    let Some(simulator) = Simulator::start("sessions").await else { return };
    let device = simulator.device(login());
    for _ in 0..100 {
        assert_eq!(device.state("").await, Ok(PowerState::On));
    }
}

#[tokio::test]
async fn a_port_where_nothing_listens_is_unknown() {
    let limits = Limits { first_wait: Duration::from_millis(500), tries: 2, ..Limits::default() };
    let device = Ipmi::new(Arc::new(Udp::to("127.0.0.1", free_port())), login()).within(limits);
    let said = unknown(device.state("").await);
    assert!(said.contains("nothing listens on that port") && said.contains("`ipport`"), "{said}");
    let said = unknown(Ipmi::new(Arc::new(Udp::to("bmc.invalid", 623)), login()).state("").await);
    assert!(said.contains("the name bmc.invalid cannot be resolved"), "{said}");
}
