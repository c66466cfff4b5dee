//! A BMC that others wrote (ipmi_sim of OpenIPMI), whose machine is a file.

use std::process::{Child, Command as Process, Stdio};
use std::time::Duration;

use palisade_devices::agent::Parameters;

use crate::{Place, free_port, is_installed, parameters, search_path};

/// A BMC of ours alone. It ends with the test.
pub(crate) struct Bmc {
    process: Child,
    place: Place,
    pub(crate) port: u16,
}

impl Bmc {
    /// Started, with a machine that is on; nothing where a program is missing.
    pub(crate) async fn start(name: &str) -> Option<Self> {
        let there = is_installed("ipmi_sim", "openipmi")
            && is_installed("ipmitool", "ipmitool")
            && is_installed("fence_ipmilan", "fence-agents");
        if !there {
            return None;
        }
        let (place, port) = (Place::new(&format!("bmc-{name}")), free_port());
        let at = place.path().display().to_string();
        std::fs::create_dir_all(place.path().join("state")).unwrap();
        place.write("power", "1");
        place.write(
            "bmc.emu",
            "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n",
        );
        place.write("lan.conf", &lan(&at, port));
        place.write("chassis.sh", &chassis(&at));
        let process = Process::new("ipmi_sim")
            .env("PATH", search_path())
            .args(["-c", &format!("{at}/lan.conf"), "-f", &format!("{at}/bmc.emu"), "-s", &format!("{at}/state"), "-n"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let bmc = Self { process, place, port };
        bmc.answers().await;
        Some(bmc)
    }

    async fn answers(&self) {
        for _ in 0..100 {
            let asked = Process::new("ipmitool")
                .args(["-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", &self.port.to_string()])
                .args(["-U", "fence", "-P", "s3cret", "-N", "1", "-R", "1", "chassis", "power", "status"])
                .output()
                .unwrap();
            if asked.status.success() {
                self.place.write("log", "");
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("ipmi_sim does not answer");
    }

    /// What the machine does from now on: `stuck`, `reject`, `slow`.
    pub(crate) fn mode(&self, mode: &str) {
        self.place.write("mode", mode);
    }

    /// Somebody else switches the machine.
    pub(crate) fn switch(&self, power: &str) {
        self.place.write("power", power);
    }

    /// The machine's own record: 0 is off.
    pub(crate) fn power(&self) -> String {
        self.place.read("power")
    }

    /// What reached the machine.
    pub(crate) fn sets(&self) -> Vec<String> {
        self.place.read("log").lines().filter(|line| line.starts_with("set")).map(str::to_owned).collect()
    }

    pub(crate) fn told(&self, password: &str) -> Parameters {
        told(self.port, password)
    }
}

/// What fence_ipmilan is told.
pub(crate) fn told(port: u16, password: &str) -> Parameters {
    let port = port.to_string();
    let plain = [
        ("ip", "127.0.0.1"),
        ("ipport", &port),
        ("username", "fence"),
        ("lanplus", "true"),
        ("cipher", "3"),
        ("power_wait", "0"),
        ("power_timeout", "6"),
    ];
    parameters(&plain, &[("password", password)])
}

fn lan(at: &str, port: u16) -> String {
    format!(
        "name \"bmc\"\nset_working_mc 0x20\nstartlan 1\n addr 127.0.0.1 {port}\n priv_limit admin\n \
         allowed_auths_callback none md2 md5 straight\n allowed_auths_user none md2 md5 straight\n \
         allowed_auths_operator none md2 md5 straight\n allowed_auths_admin none md2 md5 straight\n \
         guid 4c1d7e0293aa4fcbb1c00cc47a123456\nendlan\nchassis_control \"/bin/sh {at}/chassis.sh\"\n\
         user 2 true \"fence\" \"s3cret\" admin 10 none md2 md5 straight\n"
    )
}

fn chassis(at: &str) -> String {
    format!(
        "op=$1; shift; echo \"$op $*\" >> {at}/log\n\
         case \"$op\" in\n\
         get) echo \"power:$(cat {at}/power)\";;\n\
         set) case \"$(cat {at}/mode 2>/dev/null)\" in\n\
         stuck) ;;\n\
         reject) echo no; exit 1;;\n\
         slow) (sleep 3; echo \"$2\" > {at}/power) > /dev/null 2>&1 & ;;\n\
         *) echo \"$2\" > {at}/power;;\n\
         esac;;\nesac\nexit 0\n"
    )
}

impl Drop for Bmc {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
