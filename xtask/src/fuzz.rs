//! `cargo xtask fuzz`: bytes of strangers against everything that reads them, for some minutes each.
//!
//! Every file in `fuzz/targets` is a target. What is found stays in `fuzz/artifacts`; the bytes that led somewhere new are kept
//! in `fuzz/corpus`, and the next run begins with them. Neither is committed: a finding becomes a named test. `fuzz/seeds` holds a
//! few that are well formed, so that nobody has to guess what JSON is.

use std::{fs, process::ExitCode, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{
    install::{self, Need},
    run::Call,
    workspace::Workspace,
};

/// Pinned, as every tool is.
pub(crate) const VERSION: &str = "0.13.2";

/// For the build, besides the minutes that were asked for.
const BUILD: Duration = Duration::from_mins(30);

/// Runs each target, or those that are named, for so many minutes.
pub(crate) fn run(workspace: &Workspace, minutes: u64, only: &[String]) -> Result<ExitCode> {
    ensure!(minutes > 0, "no minutes to fuzz for");
    let known = targets(workspace)?;
    for name in only {
        ensure!(known.contains(name), "there is no target {name}; there are {}", known.join(", "));
    }
    install::ensure(workspace, Need::CargoFuzz)?;
    let mut found = Vec::new();
    for target in known.iter().filter(|target| only.is_empty() || only.contains(target)) {
        println!("---- {target}, {minutes} min");
        let corpus = workspace.root.join("fuzz").join("corpus").join(target);
        fs::create_dir_all(&corpus).with_context(|| format!("cannot create {}", corpus.display()))?;
        if let Some(complaint) = call(workspace, target, minutes).stream()?.end.complaint() {
            println!("---- {target}: {complaint}");
            found.push(target.as_str());
        }
    }
    if found.is_empty() {
        println!("---- nothing was found");
        return Ok(ExitCode::SUCCESS);
    }
    println!("---- found something: {}; the bytes are in fuzz/artifacts", found.join(", "));
    Ok(ExitCode::FAILURE)
}

fn call(workspace: &Workspace, target: &str, minutes: u64) -> Call {
    let seconds = minutes.saturating_mul(60);
    Call::new(workspace, install::cargo_fuzz_path(workspace))
        // No code of ours is unsafe, so there is nothing for a sanitizer to see; and without one the pinned toolchain will do.
        .args(["run", "--fuzz-dir", "fuzz", "--sanitizer", "none", target])
        // What is new goes into the first; the second is only read.
        .args([format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}")])
        .args(["--"])
        .args([format!("-max_total_time={seconds}")])
        .args(["-max_len=4096", "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"])
        .within(BUILD + Duration::from_secs(seconds))
}

fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.root.join("fuzz").join("targets");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_target_is_named_in_the_manifest() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
        let manifest = fs::read_to_string(root.join("fuzz").join("Cargo.toml")).unwrap();
        let names = targets(&Workspace { root: root.clone(), ci: false }).unwrap();
        assert!(!names.is_empty());
        for name in &names {
            assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"targets/{name}.rs\"")), "{name}");
            assert!(root.join("fuzz").join("seeds").join(name).is_dir(), "{name} has nothing to begin with");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), names.len());
    }
}
