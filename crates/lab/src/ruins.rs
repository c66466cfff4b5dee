//! Ruins: whoever raises a lab may be killed in the middle of it. What is left then is found by its name and cleared away.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::lab::Programs;
use crate::run::Run;
use crate::tool::{call, line};
use crate::{daemon, leftovers};

/// Raises a lab in a process of its own, kills that when the first machine is on, and clears the ruins away. Says what is still
/// there of it afterwards.
pub fn left_after_a_crash(programs: &Programs) -> Result<Vec<String>> {
    let before = Run::all();
    let mut child = Command::new(&programs.lab)
        .args(["up", "--machines", "1", "--without-palisade", "--palisade"])
        .arg(&programs.palisade)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a lab")?;
    let said = BufReader::new(child.stdout.take().context("stdout was not piped")?);
    let stands = said.lines().map_while(Result::ok).any(|line| line.contains("waiting for the nodes"));
    child.kill()?;
    child.wait()?;
    let Some(run) = Run::all().into_iter().find(|run| !before.contains(run)) else {
        bail!("the lab that was to be killed was never there");
    };
    let there = remains(run)?;
    leftovers::clear(run)?;
    if !stands || there.len() < 4 {
        bail!("the lab was killed before there was anything to clear away: {there:?}");
    }
    remains(run)
}

/// Whatever is there of a lab.
fn remains(run: Run) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let processes = daemon::marked(&run.number().to_string()).len();
    if processes > 0 {
        found.push(format!("{processes} processes"));
    }
    let dir = run.dir();
    if dir.exists() {
        found.push(dir.display().to_string());
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    found.extend(
        mounts.lines().filter(|mount| mount.contains(&*dir.to_string_lossy())).map(|mount| format!("mount {mount}")),
    );
    let links = line("ip -o link show")?;
    let words = links.lines().filter_map(|link| link.split([' ', ':', '@']).find(|word| word.starts_with("plab")));
    let ours = |link: &&str| *link == run.bridge() || link.starts_with(&format!("{}n", run.bridge()));
    found.extend(words.filter(ours).map(|link| format!("link {link}")));
    let namespaces = call("ip", ["netns", "list"])?;
    let of_ours = format!("{}-", run.bridge());
    found.extend(namespaces.lines().filter(|name| name.starts_with(&of_ours)).map(|name| format!("namespace {name}")));
    Ok(found)
}
