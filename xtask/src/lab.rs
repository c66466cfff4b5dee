//! `cargo xtask lab`: builds what the lab is made of, and hands over to it.

use std::{ffi::OsStr, process::ExitCode, time::Duration};

use anyhow::{Result, bail};

use crate::{
    install::{self, Need},
    run::{Call, Ran},
    workspace::Workspace,
};

/// What the machines of the lab are made of.
pub(crate) const NEEDS: &[Need] = &[
    Need::Root,
    Need::Go,
    Need::Program { name: "busybox", package: "busybox-static" },
    Need::Program { name: "containerd", package: "containerd" },
    Need::Program { name: "runc", package: "runc" },
    Need::Program { name: "ip", package: "iproute2" },
    Need::Program { name: "nft", package: "nftables" },
    Need::Program { name: "sysctl", package: "procps" },
    // Not on the PATH: looked for where Debian has it.
    Need::Program { name: "/usr/lib/cni/bridge", package: "containernetworking-plugins" },
    Need::Program { name: "strip", package: "binutils" },
    // They go into the image.
    Need::Program { name: "fence_ipmilan", package: "fence-agents" },
    Need::Program { name: "ipmitool", package: "ipmitool" },
    // The IPMI side of the BMCs.
    Need::Program { name: "ipmi_sim", package: "openipmi" },
];

/// All of it, so that the features of what we depend on are the same as for the tests.
pub(crate) const BUILD: [&str; 4] = ["build", "--quiet", "--workspace", "--bins"];

/// Somebody may sit in front of a lab for a day.
const LIMIT: Duration = Duration::from_hours(24);

/// Runs a command of the lab.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    for need in NEEDS {
        install::ensure(workspace, *need)?;
    }
    Ok(call(workspace, args, LIMIT)?.end.exit_code())
}

/// The same where everything that it needs is there.
pub(crate) fn call(workspace: &Workspace, args: &[impl AsRef<OsStr>], limit: Duration) -> Result<Ran> {
    if let Some(complaint) = Call::cargo(workspace, &BUILD).stream()?.end.complaint() {
        bail!("the lab could not be built: {complaint}");
    }
    let lab = workspace.target().join("debug").join("palisade-lab");
    Call::new(workspace, lab).args(args).within(limit).stream()
}
