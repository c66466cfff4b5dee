//! Image / packages: what Debian packages of this host bring, with everything that they need, as part of an image.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::tool::call;

/// The fence agents of ClusterLabs, and the programs that the common ones call.
pub(super) const AGENTS: &[&str] = &["fence-agents", "ipmitool"];
/// Clients of clouds: three quarters of the size, and there is no cloud here.
const LEFT_OUT: &[&str] = &["python3-boto3", "python3-googleapi", "python3-oauth2client", "python3-suds"];
/// What nobody reads in a container.
const UNREAD: &[&str] =
    &["/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/", "/usr/share/lintian/"];

/// Copies these packages and what they depend on into a file system in the making.
pub(super) fn copy(packages: &[&str], into: &Path) -> Result<()> {
    let known = installed()?;
    let mut files = String::new();
    for package in closure(packages, &known)? {
        for file in call("dpkg", ["-L", &package])?.lines() {
            let is_read = !UNREAD.iter().any(|unread| file.starts_with(unread));
            let kind = fs::symlink_metadata(file).map(|found| found.file_type());
            // A directory may be a link on this host, as `/lib` is; files bring their own.
            if is_read && kind.is_ok_and(|kind| kind.is_file() || kind.is_symlink()) && !into.join(&file[1..]).exists()
            {
                files.push_str(&file[1..]);
                files.push('\n');
            }
        }
    }
    let list = into.with_extension("files");
    let part = into.with_extension("packages");
    fs::write(&list, files)?;
    let shown = |path: &Path| path.display().to_string();
    call("tar", ["-C", "/", "--no-recursion", "-T", &shown(&list), "-cf", &shown(&part)])?;
    call("tar", ["-C", &shown(into), "--keep-directory-symlink", "-xf", &shown(&part)])?;
    fs::remove_file(list)?;
    Ok(fs::remove_file(part)?)
}

/// Every installed package, and what it depends on: a list of alternatives each.
type Known = BTreeMap<String, Vec<Vec<String>>>;

fn installed() -> Result<Known> {
    let format = "-f=${Package}\t${db:Status-Status}\t${Pre-Depends}, ${Depends}\t${Provides}\n";
    Ok(read(&call("dpkg-query", ["-W", format])?))
}

fn read(text: &str) -> Known {
    let mut known = Known::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let (Some(package), Some("installed"), Some(needs)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let needs = needs.split(',').map(|need| need.split('|').filter_map(name).collect::<Vec<String>>());
        known.insert(package.to_owned(), needs.filter(|need| !need.is_empty()).collect());
        // Whoever needs what is provided gets whoever provides it.
        for provided in fields.next().unwrap_or_default().split(',').filter_map(name) {
            known.entry(provided).or_insert_with(|| vec![vec![package.to_owned()]]);
        }
    }
    known
}

/// The name in `libc6:any (>= 2.34)`.
fn name(need: &str) -> Option<String> {
    let word = need.split_whitespace().next()?;
    Some(word.split(':').next()?.to_owned())
}

/// These packages and everything that they depend on, as far as it is a package of its own.
fn closure(packages: &[&str], known: &Known) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut left: Vec<String> = packages.iter().map(ToString::to_string).collect();
    while let Some(package) = left.pop() {
        let Some(needs) = known.get(&package) else {
            bail!("package {package} is not installed; `cargo xtask lab` installs it where it may");
        };
        if LEFT_OUT.contains(&package.as_str()) || !found.insert(package) {
            continue;
        }
        for need in needs {
            // Whatever is installed of the alternatives is what counts; what is missing altogether dpkg knows better than we.
            left.extend(need.iter().find(|one| known.contains_key(*one)).cloned());
        }
    }
    let is_real = |package: &String| {
        Path::new("/var/lib/dpkg/info").join(format!("{package}.list")).is_file()
            || call("dpkg", ["-L", package]).is_ok()
    };
    Ok(found.into_iter().filter(is_real).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "agents\tinstalled\t, python3:any (>= 3.9), libc6 | libc7, python3-boto3\t\n\
        python3\tinstalled\tlibc6 (>= 2), \tpython\n\
        libc6\tinstalled\t, \t\n\
        python3-boto3\tinstalled\t, huge\t\n\
        huge\tinstalled\t, \t\n\
        gone\tconfig-files\t, \t\n";

    #[test]
    fn alternatives_versions_and_provided_names_are_understood() {
        let known = read(STATUS);
        assert_eq!(known["agents"], [vec!["python3"], vec!["libc6", "libc7"], vec!["python3-boto3"]]);
        assert_eq!(known["python"], [vec!["python3"]]);
        assert!(!known.contains_key("gone"));
    }

    #[test]
    fn a_package_that_is_missing_is_named() {
        let why = closure(&["nowhere"], &read(STATUS)).unwrap_err().to_string();
        assert!(why.contains("package nowhere is not installed"), "{why}");
    }
}
