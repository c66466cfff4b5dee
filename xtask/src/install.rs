//! What a tier needs beyond Rust: found, or installed, or named as missing.
//!
//! Promise: installs only what is absent, only once, and only to where it belongs: Rust tools to our cache
//! directory, Debian packages by apt-get when we are root. Never with sudo, never with a password.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail, ensure as holds};

use crate::{deny, fuzz, run::Call, workspace::Workspace};

/// Something that is not part of a bare Rust installation.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// A part of the toolchain, seen as a cargo command.
    Component { name: &'static str, command: &'static str },
    /// A program on the PATH, and the Debian package that brings it.
    Program { name: &'static str, package: &'static str },
    /// The version of cargo-deny that `deny` pins.
    CargoDeny,
    /// The version of cargo-fuzz that `fuzz` pins.
    CargoFuzz,
    /// Python with what makes environments, in which tests install a service of others.
    PythonVenv,
    /// To be root: namespaces, bridges and mounts are made.
    Root,
    /// Go, to build Kubernetes with; Debian's is too old.
    Go,
}

/// Makes sure that it is there. An error says what is missing and what a person can do about it.
pub(crate) fn ensure(workspace: &Workspace, need: Need) -> Result<()> {
    match need {
        Need::Component { name, command } => component(workspace, name, command),
        Need::Program { name, package } => program(workspace, name, package),
        Need::CargoDeny => tool(workspace, "cargo-deny", deny::VERSION),
        Need::CargoFuzz => tool(workspace, "cargo-fuzz", fuzz::VERSION),
        Need::PythonVenv => {
            let there = || Call::new(workspace, "python3").args(["-c", "import ensurepip, venv"]).succeeds();
            package(workspace, "python3 with venv", "python3-venv", &there)
        }
        Need::Root => {
            holds!(rustix::process::geteuid().is_root(), "it makes namespaces, bridges and mounts; run it as root");
            Ok(())
        }
        Need::Go => {
            holds!(on_the_path("go"), "go is not on the PATH; Kubernetes is built with Go 1.26 or later");
            Ok(())
        }
    }
}

/// Looked for, not called: kubectl, for one, knows no `--version`. An absolute path is looked for where it is.
fn on_the_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|place| place.join(name).is_file())
}

fn component(workspace: &Workspace, name: &str, command: &str) -> Result<()> {
    let there = || Call::cargo(workspace, &[command, "--version"]).succeeds();
    if there() {
        return Ok(());
    }
    println!("---- rustup component add {name}");
    let added = Call::new(workspace, "rustup").args(["component", "add", name]).stream();
    holds!(added.is_ok() && there(), "the toolchain has no {name}, and `rustup component add {name}` did not help");
    Ok(())
}

fn program(workspace: &Workspace, name: &str, package_name: &str) -> Result<()> {
    package(workspace, name, package_name, &|| on_the_path(name))
}

fn package(workspace: &Workspace, name: &str, package: &str, there: &dyn Fn() -> bool) -> Result<()> {
    if there() {
        return Ok(());
    }
    holds!(
        rustix::process::geteuid().is_root() && Call::new(workspace, "apt-get").args(["--version"]).succeeds(),
        "{name} is not on the PATH; install it (Debian: package {package}), or run as root where apt-get works"
    );
    for args in [&["update"][..], &["install", "--yes", "--no-install-recommends", package]] {
        println!("---- apt-get {}", args.join(" "));
        let call = Call::new(workspace, "apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive");
        if let Some(complaint) = call.stream()?.end.complaint() {
            bail!("apt-get {}: {complaint}", args.join(" "));
        }
    }
    holds!(there(), "package {package} is installed, but {name} is still not on the PATH");
    Ok(())
}

/// Where our own cargo-deny is, or will be: the version is part of the path, so a new pin is a new install.
pub(crate) fn cargo_deny_path(workspace: &Workspace) -> PathBuf {
    path_of(workspace, "cargo-deny", deny::VERSION)
}

/// Where our own cargo-fuzz is, or will be.
pub(crate) fn cargo_fuzz_path(workspace: &Workspace) -> PathBuf {
    path_of(workspace, "cargo-fuzz", fuzz::VERSION)
}

fn path_of(workspace: &Workspace, name: &str, version: &str) -> PathBuf {
    home_of(workspace, name, version).join("bin").join(name)
}

fn home_of(workspace: &Workspace, name: &str, version: &str) -> PathBuf {
    workspace.tools().join(format!("{name}-{version}"))
}

fn tool(workspace: &Workspace, name: &str, version: &str) -> Result<()> {
    let there = || Call::new(workspace, path_of(workspace, name, version)).args(["--version"]).succeeds();
    if there() {
        return Ok(());
    }
    let home = home_of(workspace, name, version);
    fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    println!("---- cargo install {name} {version} into {} (once; minutes)", home.display());
    let ran = Call::cargo(workspace, &["install", "--locked", name, "--version", version, "--root"])
        .args([&home])
        // It runs for seconds and is built for minutes: not worth its own release profile.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .stream()?;
    if let Some(complaint) = ran.end.complaint() {
        bail!("{name} {version} could not be installed: {complaint}");
    }
    holds!(there(), "{name} was installed but does not run");
    Ok(())
}
