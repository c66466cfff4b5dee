//! The emulator's programs: a Python environment below the user's cache directory, made once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Pinned: another version may have other habits. The second is what it checks passwords with.
const PACKAGES: [&str; 2] = ["sushy-tools==2.2.0", "bcrypt==5.0.0"];

/// The interpreter of an environment that has the emulator; nothing where it is not wanted, or cannot be made, which is an error in CI.
pub(crate) fn interpreter() -> Option<PathBuf> {
    if std::env::var_os("PALISADE_DEVICES").is_none() {
        eprintln!("LEFT OUT: sushy-tools; `cargo xtask test --only devices` has it");
        return None;
    }
    match environment() {
        Ok(python) => Some(python),
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "sushy-tools is missing: {why}");
            eprintln!("SKIPPED, NOTHING WAS CHECKED against sushy-tools: {why}");
            None
        }
    }
}

fn environment() -> Result<PathBuf, String> {
    let home = cache()?.join(format!("palisade/{}", PACKAGES[0].replace("==", "-")));
    let (python, whole) = (home.join("venv/bin/python"), home.join("whole"));
    fs::create_dir_all(&home).map_err(|why| format!("{} cannot be made: {why}", home.display()))?;
    // Two runs at once would spoil each other's; the lock goes with the file.
    let lock = File::create(home.join("lock")).map_err(|why| why.to_string())?;
    lock.lock().map_err(|why| why.to_string())?;
    if whole.is_file() && python.is_file() {
        return Ok(python);
    }
    let venv = home.join("venv");
    run(Path::new("python3"), &["-m", "venv", "--clear", &venv.display().to_string()])?;
    run(&python, &[&["-m", "pip", "install", "--quiet"], &PACKAGES[..]].concat())?;
    fs::write(&whole, "").map_err(|why| why.to_string())?;
    Ok(python)
}

fn cache() -> Result<PathBuf, String> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    absolute("XDG_CACHE_HOME").or_else(home).ok_or_else(|| "there is no cache directory".to_owned())
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let what = format!("{} {}", program.display(), arguments.join(" "));
    let ran = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).output();
    match ran {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("`{what}` failed: {}", said.lines().last().unwrap_or("without a word")))
        }
        Err(why) => Err(format!("`{what}` cannot be run: {why}")),
    }
}
