//! cargo-deny: how it is called, and what to do without its advisory database.
//!
//! Licences, bans and sources are judged from Cargo.lock and deny.toml alone. Advisories need a database that
//! is fetched over the network. Without it they are *not checked*, which is said, counted as skipped, and no error.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;

use crate::{counts::Tally, install, run::Call, suite::Said, workspace::Workspace};

/// Pinned: another version may know other rules.
pub(crate) const VERSION: &str = "0.20.2";

/// A database that has not arrived by then will not.
const FETCH_LIMIT: Duration = Duration::from_secs(90);

const NOT_CHECKED: &str = "advisories NOT CHECKED: skipped, because their database could not be fetched \
                           and no copy of it is cached";

/// cargo-deny with these arguments, on the lock file as it is.
pub(crate) fn call(workspace: &Workspace, args: &[&str]) -> Call {
    Call::new(workspace, install::cargo_deny_path(workspace)).args(["--locked"]).args(args)
}

/// Checks the advisories, with the newest database that can be had.
pub(crate) fn advisories(workspace: &Workspace) -> Result<Said> {
    let fetched = call(workspace, &["fetch", "db"]).env("GIT_TERMINAL_PROMPT", "0").within(FETCH_LIMIT).stream()?;
    let missed = fetched.end.complaint();
    if missed.is_some() && !cached_database() {
        return Ok(Said {
            tally: Tally::default(),
            took: fetched.took,
            complaint: None,
            note: Some(NOT_CHECKED.into()),
        });
    }
    if let Some(why) = missed {
        println!("the advisory database could not be fetched ({why}): using the cached copy");
    }
    Ok(call(workspace, &["check", "--disable-fetch", "advisories"]).stream()?.into())
}

fn cached_database() -> bool {
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    cargo_home.is_some_and(|home| holds_database(&home.join("advisory-dbs")))
}

/// A copy counts only if it holds advisories: a fetch that failed may leave an empty folder behind.
fn holds_database(folder: &Path) -> bool {
    let Ok(copies) = fs::read_dir(folder) else {
        return false;
    };
    copies.flatten().any(|copy| copy.path().join("crates").is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_is_no_database() {
        let folder = env::temp_dir().join(format!("palisade-xtask-{}", std::process::id()));
        assert!(!holds_database(&folder));
        fs::create_dir_all(folder.join("advisory-db-1")).unwrap();
        assert!(!holds_database(&folder));
        fs::create_dir_all(folder.join("advisory-db-1").join("crates")).unwrap();
        assert!(holds_database(&folder));
        fs::remove_dir_all(&folder).unwrap();
    }
}
