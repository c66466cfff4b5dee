//! Run: one lab among several that may live side by side; every name and address that it uses comes from its number.
//!
//! Promise: what a lab leaves behind can be found by its number alone, and nothing else carries these names.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// Where labs keep their state. Not under a user's home: containerd's overlays want a plain file system.
const ROOT: &str = "/var/tmp";
const PREFIX: &str = "palisade-lab-";
/// As many as there are blocks of 4,096 addresses in 198.18.0.0/15, which is set aside for tests of networks (RFC 2544).
const LABS: u8 = 32;
/// One /24 of the block for the machines themselves, one per machine for its pods, the last for services.
const MACHINES: u8 = 12;
/// In every process of a lab, so that leftovers are found whatever became of their pid files.
pub const MARK: &str = "PALISADE_LAB";

/// The number of a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run(u8);

impl Run {
    /// A new lab: the first number that nobody has.
    pub fn claim() -> Result<Self> {
        for number in 0..LABS {
            let run = Self(number);
            // Whoever makes the directory has the number.
            match fs::create_dir(run.dir()) {
                Ok(()) => return Ok(run),
                Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(why) => return Err(why).with_context(|| format!("cannot make {}", run.dir().display())),
            }
        }
        bail!("{LABS} labs are up already; end one with `cargo xtask lab down`")
    }

    /// All labs that are there, whole or in ruins.
    pub fn all() -> Vec<Self> {
        (0..LABS).map(Self).filter(|run| run.dir().is_dir()).collect()
    }

    /// The lab of this number.
    pub fn numbered(number: u8) -> Result<Self> {
        let run = Self(number);
        if !run.dir().is_dir() {
            bail!("there is no lab {number}; `cargo xtask lab status` shows which there are");
        }
        Ok(run)
    }

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Everything that this lab keeps.
    pub fn dir(self) -> PathBuf {
        PathBuf::from(ROOT).join(format!("{PREFIX}{}", self.0))
    }

    /// The bridge that all machines hang on.
    pub fn bridge(self) -> String {
        format!("plab{}", self.0)
    }

    /// The network namespace of a machine.
    pub fn namespace(self, machine: &str) -> String {
        format!("plab{}-{machine}", self.0)
    }

    /// The bridge's end of a machine's cable.
    pub fn cable(self, machine: &str) -> String {
        format!("plab{}{machine}", self.0)
    }

    /// The cgroup of a machine's pods.
    pub fn cgroup(self, machine: &str) -> String {
        format!("plab{}-{machine}", self.0)
    }

    /// What [`MARK`] says in the processes of a machine, or of the control plane.
    pub fn mark(self, of: &str) -> String {
        format!("{}/{of}", self.0)
    }

    /// The control plane, on the bridge.
    pub fn api_address(self) -> Ipv4Addr {
        self.address(0, 1)
    }

    /// A machine.
    pub fn machine_address(self, index: u8) -> Ipv4Addr {
        self.address(0, 10 + index)
    }

    /// A machine's BMC, which has a network card of its own.
    pub fn bmc_address(self, index: u8) -> Ipv4Addr {
        self.address(0, 100 + index)
    }

    /// The pods of a machine.
    pub fn pods(self, index: u8) -> String {
        format!("{}/24", self.address(1 + index, 0))
    }

    /// All addresses of the lab.
    pub fn block(self) -> String {
        format!("{}/20", self.address(0, 0))
    }

    /// The services.
    pub fn services(self) -> String {
        format!("{}/24", self.address(15, 0))
    }

    /// The service `kubernetes`: the first of that range, by the API server's own rule.
    pub fn api_service(self) -> Ipv4Addr {
        self.address(15, 1)
    }

    /// Where etcd listens, on loopback: for clients, and for the peers that it does not have.
    pub fn etcd_ports(self) -> (u16, u16) {
        let first = 23_790 + 2 * u16::from(self.0);
        (first, first + 1)
    }

    /// The most machines that a lab can have.
    pub const fn most_machines() -> u8 {
        MACHINES
    }

    fn address(self, net: u8, host: u8) -> Ipv4Addr {
        let block = u16::from(self.0) * 16 + u16::from(net);
        let [high, low] = block.to_be_bytes();
        Ipv4Addr::new(198, 18 + high, low, host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_share_no_address() {
        assert_eq!(Run(0).api_address(), Ipv4Addr::new(198, 18, 0, 1));
        assert_eq!(Run(1).block(), "198.18.16.0/20");
        assert_eq!(Run(1).pods(2), "198.18.19.0/24");
        assert_eq!(Run(31).services(), "198.19.255.0/24");
        assert_eq!(Run(15).api_service(), Ipv4Addr::new(198, 18, 255, 1));
        assert_eq!(Run(16).api_address(), Ipv4Addr::new(198, 19, 0, 1));
    }

    #[test]
    fn an_interface_has_at_most_fifteen_letters() {
        assert!(Run(31).cable("n12").len() <= 15 && Run(31).bridge().len() <= 15);
    }
}
