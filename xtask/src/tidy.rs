//! Nothing of one machine gets into the repository, and no crate escapes the workspace's lints.

use std::path::Path;

use anyhow::Result;

use crate::{
    files::{self, Finding},
    workspace::Workspace,
};

/// Folders that belong to a person or a machine. In halves, so that this file does not find itself.
const MACHINE_PATHS: &[&str] =
    &[concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/"), concat!("/", "Users/")];

/// Hosts that packages come from: which one it is is a matter of the machine, or of its mirror.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("registry.", "npmjs.org"),
    concat!("proxy.", "golang.org"),
    concat!("files.", "pythonhosted.org"),
    concat!("pypi", ".org"),
    concat!("repo.maven.", "apache.org"),
    concat!("repo1.", "maven.org"),
    concat!("deb.", "debian.org"),
];

/// Every line of a committed file that tells where it was written.
pub(crate) fn traces(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in files::committed(workspace)? {
        let Some(text) = files::text(workspace, &file)? else {
            continue;
        };
        for (line, content) in (1..).zip(text.lines()) {
            if let Some(trace) = trace(content) {
                findings.push(Finding { file: file.clone(), line, what: format!("contains {trace}") });
            }
        }
    }
    Ok(findings)
}

fn trace(line: &str) -> Option<&'static str> {
    let path = MACHINE_PATHS.iter().find(|path| line.match_indices(**path).any(|(at, _)| starts_a_path(&line[..at])));
    let host = || REGISTRY_HOSTS.iter().find(|host| line.contains(**host));
    path.or_else(host).copied()
}

/// In `https://example.org/home/` or `docs/work/` the slash goes on with a path; elsewhere it begins one.
fn starts_a_path(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || "_-.~$*{}%".contains(c))
}

/// Every crate whose manifest does not take the lints, and with them `forbid(unsafe_code)`.
pub(crate) fn unlinted(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in files::committed(workspace)? {
        if file.file_name() != Some("Cargo.toml".as_ref()) || file == Path::new("Cargo.toml") {
            continue;
        }
        let text = files::text(workspace, &file)?.unwrap_or_default();
        if !takes_lints(&text) {
            findings.push(Finding { file, line: 1, what: "lacks `[lints] workspace = true`".into() });
        }
    }
    Ok(findings)
}

fn takes_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lines.next() == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_machine_is_found_where_it_begins() {
        for line in [
            concat!("see /", "work/main"),
            concat!("\"/", "root/.cargo\""),
            concat!("(/", "home/ann/x)"),
            concat!("file:///", "Users/ann"),
            concat!("/", "work/"),
        ] {
            assert!(trace(line).is_some(), "{line}");
        }
    }

    #[test]
    fn a_path_of_the_project_is_not() {
        for line in [
            concat!("https://example.org/", "home/page"),
            concat!("docs/", "work/flow.md"),
            concat!("$HOME/", "work/x"),
            "the work/life of a root/branch",
        ] {
            assert_eq!(trace(line), None, "{line}");
        }
    }

    #[test]
    fn a_registry_host_is_found_and_the_name_in_a_lock_file_is_not() {
        assert!(trace(concat!("https://static.", "crates.io/x")).is_some());
        assert_eq!(trace("source = \"registry+https://github.com/rust-lang/crates.io-index\""), None);
    }

    #[test]
    fn lints_are_taken_or_not() {
        assert!(takes_lints("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"));
        assert!(!takes_lints("[package]\nname = \"a\"\n"));
        assert!(!takes_lints("[lints]\n[dependencies]\nworkspace = true\n"));
    }
}
