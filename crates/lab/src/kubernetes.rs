//! Kubernetes: its components in one binary, built once from Go modules and kept in the user's cache.
//!
//! Promise: a binary is only taken from the cache if it was built from these very sources, by the hash in its name.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::tool::call;

const SOURCES: [(&str, &str); 3] = [
    ("go.mod", include_str!("../kubernetes/go.mod")),
    ("go.sum", include_str!("../kubernetes/go.sum")),
    ("main.go", include_str!("../kubernetes/main.go")),
];
/// What the binary says of itself; kubectl cannot talk to a server without a version.
const VERSION: (&str, &str, &str) = ("v1.36.3", "1", "36");

/// The binary.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    binary: PathBuf,
}

impl Kubernetes {
    /// The binary from the cache, or a new one: that takes about seven minutes on two cores. `tell` hears how it goes.
    pub fn built(mut tell: impl FnMut(&str)) -> Result<Self> {
        let home = cache()?.join(format!("kubernetes-{}-{}", VERSION.0, hash()?));
        let binary = home.join("kubernetes");
        if binary.is_file() {
            return Ok(Self { binary });
        }
        let sources = home.join("src");
        fs::create_dir_all(&sources).with_context(|| format!("cannot make {}", sources.display()))?;
        for (name, text) in SOURCES {
            fs::write(sources.join(name), text)?;
        }
        tell(&format!("building Kubernetes {} from source, once; this takes minutes", VERSION.0));
        let made = home.join(format!("kubernetes.{}", std::process::id()));
        build(&sources, &made, &mut tell)?;
        // Whole or not at all, also if two build at once.
        fs::rename(&made, &binary)?;
        Ok(Self { binary })
    }

    /// A call of one of its components.
    pub fn command(&self, component: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg(component);
        command
    }

    /// The binary.
    pub fn binary(&self) -> &Path {
        &self.binary
    }
}

fn build(sources: &Path, made: &Path, tell: &mut impl FnMut(&str)) -> Result<()> {
    let (version, major, minor) = VERSION;
    let of = "k8s.io/component-base/version";
    let flags = format!("-s -w -X {of}.gitVersion={version} -X {of}.gitMajor={major} -X {of}.gitMinor={minor}");
    let mut go = Command::new("go");
    go.current_dir(sources).args(["build", "-trimpath", "-mod=readonly", "-ldflags", &flags, "-o"]).arg(made).arg(".");
    let mut child = go
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot call go; the lab needs Go 1.26 to build Kubernetes")?;
    let begin = Instant::now();
    let mut told = begin;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if told.elapsed() > Duration::from_secs(30) {
            told = Instant::now();
            tell(&format!("building Kubernetes: {} s so far", begin.elapsed().as_secs()));
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    if !status.success() {
        let mut why = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            let _read = std::io::Read::read_to_string(&mut stderr, &mut why);
        }
        bail!("Kubernetes could not be built:\n{}", why.trim());
    }
    tell(&format!("Kubernetes {version} was built in {} s", begin.elapsed().as_secs()));
    Ok(())
}

fn hash() -> Result<String> {
    let mut child = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        for (_, text) in SOURCES {
            stdin.write_all(text.as_bytes())?;
        }
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.chars().take(16).collect())
}

/// Where things that are made once are kept.
pub fn cache() -> Result<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = given.or_else(home).context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("palisade"))
}

/// The version of Go, if there is one.
pub fn go_version() -> Option<String> {
    call("go", ["version"]).ok().map(|text| text.trim().to_owned())
}
