//! Network: a bridge, and for each machine a namespace with a cable to it.
//!
//! The links of a machine are cut inside its namespace by packet filter, each on its own; `unplug` takes the whole cable.

use std::net::Ipv4Addr;

use anyhow::{Result, anyhow};

use crate::control_plane::API_PORT;
use crate::run::Run;
use crate::tool::{call, line};

/// The rules of a machine that has no power.
const NO_POWER: &str = "no_power";

/// What a machine is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// To the API server.
    Api,
    /// To everybody else but the BMCs.
    Peers,
}

/// The bridge, with the control plane's address and those of the BMCs on it.
pub fn raise(run: Run, machines: u8) -> Result<()> {
    let bridge = run.bridge();
    line(&format!("ip link add {bridge} type bridge"))?;
    line(&format!("ip addr add {}/24 dev {bridge}", run.api_address()))?;
    for index in 1..=machines {
        line(&format!("ip addr add {}/24 dev {bridge}", run.bmc_address(index)))?;
    }
    line(&format!("ip link set {bridge} up"))?;
    Ok(())
}

/// The namespace and the cable of a machine.
pub fn wire(run: Run, machine: &str, index: u8, machines: u8) -> Result<()> {
    let (namespace, cable, bridge) = (run.namespace(machine), run.cable(machine), run.bridge());
    line(&format!("ip netns add {namespace}"))?;
    line(&format!("ip link add {cable} type veth peer name eth0 netns {namespace}"))?;
    line(&format!("ip link set {cable} master {bridge} up"))?;
    let inside = |words: &str| line(&format!("ip -n {namespace} {words}"));
    inside("link set lo up")?;
    inside(&format!("addr add {}/24 dev eth0", run.machine_address(index)))?;
    inside("link set eth0 up")?;
    inside(&format!("route add default via {}", run.api_address()))?;
    for other in (1..=machines).filter(|other| *other != index) {
        inside(&format!("route add {} via {}", run.pods(other), run.machine_address(other)))?;
    }
    // Not `ip netns exec`: it would remount /sys.
    let path = format!("--net=/var/run/netns/{namespace}");
    call("nsenter", [&path, "sysctl", "-qw", "net.ipv4.ip_forward=1"])?;
    Ok(())
}

/// Cuts a link of a machine.
pub fn cut(run: Run, machine: &str, link: Link) -> Result<()> {
    let (api, block) = (run.api_address(), run.block());
    let bmcs = format!("{}-{}", bmc(run, 1), bmc(run, Run::most_machines()));
    let (out, back) = match link {
        Link::Api => (format!("ip daddr {api} tcp dport {API_PORT}"), format!("ip saddr {api} tcp sport {API_PORT}")),
        Link::Peers => (
            format!("ip daddr {block} ip daddr != {bmcs} tcp dport != {API_PORT} oifname eth0"),
            format!("ip saddr {block} ip saddr != {bmcs} tcp sport != {API_PORT} iifname eth0"),
        ),
    };
    let table = table(link);
    let rules = format!(
        "table inet {table} {{
            chain out {{ type filter hook output priority -300; {out} drop; }}
            chain in {{ type filter hook input priority -300; {back} drop; }}
            chain through {{ type filter hook forward priority -300; {out} drop; {back} drop; }}
        }}"
    );
    heal(run, machine, link)?;
    nft(run, machine, &rules)
}

/// Heals it.
pub fn heal(run: Run, machine: &str, link: Link) -> Result<()> {
    // Made first, so that there is one to take away.
    let table = table(link);
    nft(run, machine, &format!("table inet {table} {{}}; delete table inet {table}"))
}

/// A machine without power answers nobody, where its kernel, which is ours, would refuse in its name.
pub fn darken(run: Run, machine: &str) -> Result<()> {
    let drops = ["input", "output", "forward"]
        .map(|hook| format!("chain {hook}_ {{ type filter hook {hook} priority -310; drop; }}"));
    let anew = format!("table inet {NO_POWER} {{}}; delete table inet {NO_POWER}");
    nft(run, machine, &format!("{anew}; table inet {NO_POWER} {{\n{}\n}}", drops.join("\n")))
}

/// With power it does again, as far as its links go.
pub fn lighten(run: Run, machine: &str) -> Result<()> {
    nft(run, machine, &format!("table inet {NO_POWER} {{}}; delete table inet {NO_POWER}"))
}

/// Takes the cable out, or puts it back.
pub fn plug(run: Run, machine: &str, plugged: bool) -> Result<()> {
    line(&format!("ip link set {} {}", run.cable(machine), if plugged { "up" } else { "down" })).map(drop)
}

/// Takes everything of a lab away.
pub fn raze(run: Run) -> Result<()> {
    let mut failed = Vec::new();
    let prefix = run.namespace("");
    let namespaces = line("ip -o netns list").unwrap_or_default();
    let ours = namespaces.lines().filter_map(|entry| entry.split_whitespace().next());
    for namespace in ours.filter(|name| name.starts_with(&prefix)) {
        // First the cable: with its namespace it would go as well, but only when the kernel comes round to it, and the next lab of
        // this number may be there before that.
        let cable = run.cable(namespace.strip_prefix(&prefix).unwrap_or_default());
        if line(&format!("ip link show {cable}")).is_ok() {
            failed.extend(line(&format!("ip link del {cable}")).err());
        }
        failed.extend(line(&format!("ip netns del {namespace}")).err());
    }
    if line(&format!("ip link show {}", run.bridge())).is_ok() {
        failed.extend(line(&format!("ip link del {}", run.bridge())).err());
    }
    match failed.first() {
        None => Ok(()),
        Some(why) => Err(anyhow!("the network of lab {} is not gone: {why}", run.number())),
    }
}

fn table(link: Link) -> &'static str {
    match link {
        Link::Api => "lab_cut_api",
        Link::Peers => "lab_cut_peers",
    }
}

fn bmc(run: Run, index: u8) -> Ipv4Addr {
    run.bmc_address(index)
}

fn nft(run: Run, machine: &str, rules: &str) -> Result<()> {
    let path = format!("--net=/var/run/netns/{}", run.namespace(machine));
    call("nsenter", [&path, "nft", rules]).map(drop)
}
