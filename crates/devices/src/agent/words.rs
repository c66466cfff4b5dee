//! Agent / words: what an agent's exit code and words amount to.
//!
//! Promise (I6): off is what an agent says in the very words `Status: OFF`, with the exit code for off, with no trouble beside
//! it. Everything else is on or unknown. An exit code of 0 after a command says that the agent believes to have done it.
//! Promise: `nothing was sent` is said only of what agents check before they reach out to a device.
//!
//! Exit codes carry almost nothing: 0 is done (or on), 2 is off, 1 is every failure. Why it failed is in words.

use std::fmt;

use crate::{Command, PowerState};

/// What was heard of one run. It cannot be printed: nothing has been taken out of it yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Heard {
    /// How it ended.
    pub end: End,
    /// What it wrote.
    pub stdout: String,
    /// What it wrote of troubles.
    pub stderr: String,
    /// It wrote more than that.
    pub cut: bool,
    /// It did not read what it was told.
    pub deaf: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// Its time was over, and it was killed.
    Deadline,
    /// Nobody saw how.
    Lost,
}

/// What an agent says that it has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It has sent the command.
    Sent,
    /// It has sent nothing: the device said that it was so already.
    Already,
}

/// Whether a plug is one of the device's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// It is.
    Yes,
    /// It is not; these are.
    No(Vec<String>),
    /// More than one is called so.
    Twice,
    /// The agent cannot list plugs.
    CannotTell,
}

/// Why it is not known what was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something is missing or wrong in what it was told. It says so before it does anything.
    Settings,
    /// It could not log in.
    Login,
    /// The connection was lost.
    ConnectionLost,
    /// The device did not answer it.
    Silent,
    /// The device did not do it in the agent's time.
    NotDone,
    /// The device did not say how it stands. A wrong password of IPMI ends here as well.
    NoStatus,
    /// It did not understand all that it was told, and went on.
    Misread,
    /// It broke down.
    Traceback,
    /// It told of trouble, and ended as if there were none.
    Trouble,
    /// Its words and its exit code do not go together.
    Contradiction,
    /// It ended well and did not say how the device stands.
    Wordless,
    /// It wrote more than is kept.
    Flood,
    /// It did not read what it was told.
    Deaf,
    /// It ended with this code.
    Code(i32),
    /// It was killed by this signal.
    Killed(i32),
    /// Its time was over.
    Deadline,
    /// Nobody saw how it ended.
    Lost,
}

impl Cause {
    /// Whether it is certain that nothing was sent.
    pub const fn nothing_was_sent(self) -> bool {
        matches!(self, Self::Settings | Self::Login)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Settings => "the agent cannot work with these parameters; put them right",
            Self::Login => "the agent could not log in; check address, user and password",
            Self::ConnectionLost => "the agent lost the connection",
            Self::Silent => "the device did not answer the agent",
            Self::NotDone => "the device did not do it in the agent's time",
            Self::NoStatus => "the device did not say how it stands; it may be a wrong password or plug",
            Self::Misread => "the agent did not understand all that it was told",
            Self::Traceback => "the agent broke down",
            Self::Trouble => "the agent told of trouble and ended as if there were none",
            Self::Contradiction => "the agent's words and its exit code do not go together",
            Self::Wordless => "the agent did not say how the device stands",
            Self::Flood => "the agent wrote without end",
            Self::Deaf => "the agent did not read what it was told",
            Self::Code(code) => return write!(f, "the agent ended with code {code}"),
            Self::Killed(signal) => return write!(f, "the agent was killed by signal {signal}"),
            Self::Deadline => "the agent's time was over, and it was killed",
            Self::Lost => "nobody saw how the agent ended",
        })
    }
}

/// How the device stands, after `status`.
pub fn state(heard: &Heard) -> Result<PowerState, Cause> {
    let code = well(heard, &[0, 2])?;
    match (said(&heard.stdout, "Status:")?.as_slice(), code) {
        (["ON"], 0) => Ok(PowerState::On),
        (["OFF"], 2) => Ok(PowerState::Off),
        ([], _) => Err(Cause::Wordless),
        _ => Err(Cause::Contradiction),
    }
}

/// What was done, after `off` or `on`.
pub fn done(command: Command, heard: &Heard) -> Result<Done, Cause> {
    well(heard, &[0])?;
    let (sent, already) = match command {
        Command::Off => ("Powered OFF", "Already OFF"),
        Command::On => ("Powered ON", "Already ON"),
    };
    match said(&heard.stdout, "Success:")?.as_slice() {
        // Agents that are not written with the common library say nothing.
        [] => Ok(Done::Sent),
        [one] if *one == sent => Ok(Done::Sent),
        [one] if *one == already => Ok(Done::Already),
        _ => Err(Cause::Contradiction),
    }
}

/// Whether a plug is one of the device's, after `list`.
pub fn listed(plug: &str, heard: &Heard) -> Result<Listed, Cause> {
    well(heard, &[0])?;
    let lines = || heard.stdout.lines().map(str::trim).filter(|line| !line.is_empty());
    if lines().any(|line| line == "N/A" || line.starts_with("NOTICE:")) {
        return Ok(Listed::CannotTell);
    }
    let pairs: Vec<(&str, &str)> = lines().map(|line| line.split_once(',').unwrap_or((line, ""))).collect();
    // Agents take a number for the plug's own, whatever another plug is called.
    let is_number = plug.bytes().all(|byte| byte.is_ascii_digit());
    let is = |(id, alias): &&(&str, &str)| *id == plug || (!is_number && *alias == plug);
    Ok(match pairs.iter().filter(is).count() {
        0 => Listed::No(pairs.iter().map(|(id, _)| (*id).to_owned()).collect()),
        1 => Listed::Yes,
        _ => Listed::Twice,
    })
}

/// The exit code, if it is one of these and nothing speaks against it.
fn well(heard: &Heard, good: &[i32]) -> Result<i32, Cause> {
    let code = match heard.end {
        End::Code(code) => code,
        End::Signal(signal) => return Err(Cause::Killed(signal)),
        End::Deadline => return Err(Cause::Deadline),
        End::Lost => return Err(Cause::Lost),
    };
    if !good.contains(&code) {
        return Err(cause(heard).unwrap_or(Cause::Code(code)));
    }
    if heard.deaf {
        Err(Cause::Deaf)
    } else if heard.cut {
        Err(Cause::Flood)
    } else if is_trouble(&heard.stderr) || is_trouble(&heard.stdout) {
        Err(Cause::Trouble)
    } else {
        Ok(code)
    }
}

/// What agents of the common library say of a failure. What may come after something was sent stands before what cannot.
const CAUSES: [(&str, Cause); 14] = [
    ("Traceback (most recent call last)", Cause::Traceback),
    ("Timed out waiting to power", Cause::NotDone),
    ("Connection lost", Cause::ConnectionLost),
    ("Connection timed out", Cause::Silent),
    ("timed out", Cause::Silent),
    ("Connection refused", Cause::Silent),
    ("nable to obtain correct plug status", Cause::NoStatus),
    ("Unable to get PowerState", Cause::NoStatus),
    ("Parse error", Cause::Misread),
    ("Unable to connect/login to fencing device", Cause::Login),
    ("You have to ", Cause::Settings),
    ("Unrecognised action", Cause::Settings),
    ("The value you have entered for", Cause::Settings),
    ("not found or not accessible", Cause::Settings),
];

fn cause(heard: &Heard) -> Option<Cause> {
    let found = CAUSES.iter().find(|(words, _)| heard.stderr.contains(words) || heard.stdout.contains(words));
    found.map(|(_, cause)| *cause)
}

/// Words that nobody says who has done what he was told.
fn is_trouble(text: &str) -> bool {
    const WORDS: [&str; 8] =
        ["error", "traceback", "exception", "failed", "unable to", "timed out", "connection lost", "critical"];
    let text = text.to_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

/// What follows a word and a space, each time that it stands at the beginning of a line. It may stand nowhere else.
fn said<'a>(text: &'a str, word: &'a str) -> Result<Vec<&'a str>, Cause> {
    let follows = |line: &'a str| line.trim().strip_prefix(word)?.strip_prefix(' ');
    let mut said: Vec<&str> = text.lines().filter_map(follows).collect();
    if said.len() != text.matches(word).count() {
        return Err(Cause::Contradiction);
    }
    said.dedup();
    Ok(said)
}

#[cfg(test)]
mod tests;
