//! Leftovers: everything of a lab that may still be there, found by its number, whatever became of whoever started it.
//!
//! Never: touches what does not carry the lab's own name or mark.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use crate::daemon;
use crate::network;
use crate::run::Run;

/// Takes a lab away, as far as it is there. Goes on after an error, and tells the first.
pub fn clear(run: Run) -> Result<()> {
    let mut failed: Vec<anyhow::Error> = Vec::new();
    // The machines' init processes take everything in them along; a second round finds what was being started.
    for _round in 0..2 {
        for process in daemon::marked(&run.number().to_string()) {
            failed.extend(process.kill().err());
        }
    }
    failed.extend(network::raze(run).err());
    unmount(&run.dir());
    cgroups(&run.cgroup(""));
    failed
        .extend(fs::remove_dir_all(run.dir()).with_context(|| format!("cannot remove {}", run.dir().display())).err());
    match failed.into_iter().next() {
        None => Ok(()),
        Some(why) => Err(anyhow!("lab {} is not all gone: {why:#}", run.number())),
    }
}

/// Machines mount in namespaces of their own; only what was mounted outside can be left.
fn unmount(dir: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let within =
        mounts.lines().filter_map(|line| line.split_whitespace().nth(1)).filter(|at| Path::new(at).starts_with(dir));
    let mut within: Vec<&str> = within.collect();
    within.reverse();
    for at in within {
        // What cannot be unmounted shows itself when the directory cannot be removed.
        let _shown_later = crate::tool::call("umount", ["-l", at]);
    }
}

/// Removes the cgroups of the machines' pods: they outlive the processes in them.
fn cgroups(prefix: &str) {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    for hierarchy in hierarchies.chain([root.to_owned()]) {
        for group in fs::read_dir(hierarchy).into_iter().flatten().flatten() {
            if group.file_name().to_string_lossy().starts_with(prefix) {
                remove_group(&group.path());
            }
        }
    }
}

/// From the leaves to the root: a cgroup with children cannot be removed.
fn remove_group(group: &Path) {
    for child in fs::read_dir(group).into_iter().flatten().flatten() {
        if child.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&child.path());
        }
    }
    let _busy = fs::remove_dir(group);
}
