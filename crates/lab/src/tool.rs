//! Tool: one call of another program, whose failure says what was called and what it answered.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Calls a program and gives what it printed.
pub fn call<A: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = A>) -> Result<String> {
    let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let shown = || {
        let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        format!("{program} {}", words.join(" "))
    };
    let output = Command::new(program).args(&args).output().with_context(|| format!("cannot call `{}`", shown()))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", shown(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same for a line of words without blanks in them.
pub fn line(words: &str) -> Result<String> {
    let mut words = words.split_whitespace();
    call(words.next().unwrap_or_default(), words)
}
