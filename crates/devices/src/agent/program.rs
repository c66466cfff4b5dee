//! Agent / program: which file is run, and what is around it.
//!
//! Promise (I7): an agent sees of our environment the PATH and nothing else, and its command line is empty: what it has to know, it
//! reads from its standard input.
//! Never: a name with a path in it, or one that is no agent's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::Failure;

/// What is around an agent.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Where programs are looked for: the agent, and what the agent calls.
    pub path: OsString,
    /// A file of certificates that the agent is to trust, where it asks anybody.
    pub authorities: Option<PathBuf>,
}

/// One agent, as a file.
#[derive(Clone, Debug)]
pub(super) struct Program {
    file: PathBuf,
    around: Surroundings,
}

impl Program {
    /// Finds an agent by its name.
    pub(super) fn find(name: &str, around: &Surroundings) -> Result<Self, Failure> {
        let letters = |text: &str| text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        if !name.strip_prefix("fence_").is_some_and(|rest| !rest.is_empty() && letters(rest)) {
            return Err(Failure::Refused(format!(
                "{name:?} is no name of a fence agent; they begin with fence_ and are made of a-z, 0-9 and _"
            )));
        }
        let places = std::env::split_paths(&around.path).filter(|place| place.is_absolute());
        match places.map(|place| place.join(name)).find(|file| file.is_file()) {
            Some(file) => Ok(Self { file, around: around.clone() }),
            None => Err(Failure::Refused(format!(
                "{name} is not in this image; use one that has it, or an agent that is there"
            ))),
        }
    }

    /// How it is started: in a process group of its own, which can be ended as a whole.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.file);
        command.env_clear().env("PATH", &self.around.path).env("LANG", "C").env("LC_ALL", "C");
        // Agents write nothing there; what they call asks for it.
        command.env("HOME", "/tmp");
        // Warnings of Python are no words of the agent.
        command.env("PYTHONWARNINGS", "ignore").env("PYTHONDONTWRITEBYTECODE", "1");
        if let Some(file) = &self.around.authorities {
            command.env("REQUESTS_CA_BUNDLE", file).env("SSL_CERT_FILE", file);
        }
        command.current_dir(Path::new("/")).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_agents_are_looked_for() {
        let around = Surroundings { path: "/bin:/usr/bin".into(), ..Surroundings::default() };
        for name in ["sh", "fence_", "fence_x/../../bin/sh", "/bin/sh", "fence_X", "fence_ipmilan ", "../fence_x"] {
            let why = Program::find(name, &around).unwrap_err().to_string();
            assert!(why.contains("is no name of a fence agent"), "{why}");
        }
        let why = Program::find("fence_that_nobody_wrote", &around).unwrap_err().to_string();
        assert!(why.contains("not in this image"), "{why}");
    }
}
