//! Agent: any device that a ClusterLabs fence agent knows, or an agent with the same interface.
//!
//! Promise (I6): an agent's word is taken for what it is. Exit code 0 after `off` means that the agent believes to have sent it;
//! how the device stands is asked by a run of its own, and only `Status: OFF` with the exit code for off is off.
//! Promise (I7): what an agent is told in confidence it reads from its standard input, from nowhere else, and no word of it comes
//! out again. (Agents put passwords on the command lines of the tools that they call themselves; ipmitool hides it at once.)
//! Never: `reboot`, a list of plugs, an agent's own idea of what is off.
//!
//! | file | is |
//! |---|---|
//! | `program`, `process` | which file is run, and one run of it |
//! | `secret`, `redact` | what nobody may read |
//! | `metadata` | what an agent can be told |
//! | `parameters`, `forbidden` | what it is told |
//! | `words` | what it says |
//! | `power` | off, on and status |

mod forbidden;
pub(crate) mod fuzz;
mod metadata;
mod parameters;
mod power;
mod process;
mod program;
mod redact;
mod secret;
pub mod words;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

pub use self::forbidden::{Forbidden, forbidden};
pub use self::metadata::{BadMetadata, Kind, Metadata, Parameter};
use self::parameters::Checked;
pub use self::parameters::{BadParameter, Parameters};
use self::program::Program;
pub use self::program::Surroundings;
use self::redact::Redactor;
pub use self::secret::Secret;
use self::words::{Cause, End, Heard};
use crate::{Answer, Command, Device, Failure, Identity, Permit, PowerState};

/// What is kept of each stream of an agent, in bytes. Its words are a few lines.
const WORDS: usize = 16 * 1024;

/// What is kept of metadata and of lists of plugs: the longest metadata seen has 40 KB, and clouds have many machines.
const PAGES: usize = 1024 * 1024;

/// What is shown of an agent's words, in characters.
const SHOWN: usize = 600;

/// Agents that log in anew for each request: that they could not says nothing of the request before.
const LOG_IN_AGAIN: [&str; 2] = ["fence_eps", "fence_zvmip"];

/// One agent, with what it is told.
pub struct Agent {
    name: String,
    program: Program,
    metadata: Metadata,
    checked: Checked,
    redactor: Redactor,
    /// When everything has to be over.
    until: Instant,
    /// Plugs that the device has listed.
    plugs: Mutex<BTreeSet<String>>,
}

/// What an agent says of a command that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The agent sent it. Otherwise the device was so already.
    pub sent: bool,
    /// Its words, redacted.
    pub said: String,
}

impl Agent {
    /// Finds an agent, and holds what it is to be told against what it says that it can be told. Nothing is sent to any device.
    pub async fn find(name: &str, told: &Parameters, around: &Surroundings, until: Instant) -> Result<Self, Failure> {
        let program = Program::find(name, around)?;
        let metadata = describe(name, &program, until).await?;
        let checked = Checked::new(name, &metadata, told).map_err(|why| Failure::Refused(why.to_string()))?;
        let redactor = Redactor::new(told.secret.values(), &checked.users());
        let (name, plugs) = (name.to_owned(), Mutex::default());
        Ok(Self { name, program, metadata, checked, redactor, until, plugs })
    }

    async fn ask(&self, action: &str, plug: &str) -> Result<Heard, Failure> {
        let input = self.checked.input(action, plug).map_err(|why| Failure::Refused(why.to_string()))?;
        let most = if action == "list" { PAGES } else { WORDS };
        let heard = process::run(&self.program, &input, self.until, most).await;
        heard.map_err(|why| Failure::Refused(format!("{} cannot be started: {why}", self.name)))
    }

    fn failed(&self, action: &str, cause: Cause, heard: &Heard) -> Failure {
        let certain = match cause {
            Cause::Login => !LOG_IN_AGAIN.contains(&self.name.as_str()),
            other => other.nothing_was_sent(),
        };
        let why = format!("{} {action}: {cause}; it said: {}", self.name, self.said(heard));
        if certain { Failure::Refused(why) } else { Failure::Unknown(why) }
    }

    /// An agent's words, for people: without secrets, on one line, and not too many.
    fn said(&self, heard: &Heard) -> String {
        let text = [&heard.stdout, &heard.stderr].map(|text| self.redactor.clean(text, heard.cut)).join("\n");
        let lines =
            text.lines().map(without_date).filter(|line| !line.is_empty() && !line.contains("use '-h' for usage"));
        let line = lines.collect::<Vec<_>>().join(" / ");
        let line: String = line.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).take(SHOWN).collect();
        if line.is_empty() { "nothing".to_owned() } else { line }
    }

    fn is_known(&self, plug: &str) -> bool {
        self.plugs.lock().unwrap_or_else(PoisonError::into_inner).contains(plug)
    }

    fn remember(&self, plug: &str) {
        self.plugs.lock().unwrap_or_else(PoisonError::into_inner).insert(plug.to_owned());
    }
}

/// What an agent says of itself. It is told no secret for that.
async fn describe(name: &str, program: &Program, until: Instant) -> Result<Metadata, Failure> {
    let refused = |why: String| Failure::Refused(format!("{name}: {why}"));
    let input = Secret::new("action=metadata\n");
    let heard = process::run(program, &input, until, PAGES).await;
    let heard = heard.map_err(|why| refused(format!("it cannot be started: {why}")))?;
    if heard.end != End::Code(0) || heard.cut {
        let why: String = heard.stderr.lines().last().unwrap_or_default().chars().take(SHOWN).collect();
        return Err(refused(format!("it does not describe itself ({:?}): {why}", heard.end)));
    }
    Metadata::read(&heard.stdout).map_err(|why| refused(why.to_string()))
}

/// A line of a log without its date.
fn without_date(line: &str) -> &str {
    let line = line.trim();
    let dated = line.starts_with(|sign: char| sign.is_ascii_digit());
    let level = ["ERROR:", "WARNING:", "CRITICAL:"].iter().filter_map(|level| line.find(level)).min();
    match level {
        Some(at) if dated => line.get(at..).unwrap_or(line),
        _ => line,
    }
}

impl Device for Agent {
    fn command<'a>(&'a self, plug: &'a str, command: Command, permit: &'a dyn Permit) -> Answer<'a, ()> {
        Box::pin(async move { self.tell(plug, command, permit).await.map(|_| ()) })
    }

    fn state<'a>(&'a self, plug: &'a str) -> Answer<'a, PowerState> {
        Box::pin(self.status(plug))
    }

    /// An agent cannot tell whose machine it is.
    fn identity<'a>(&'a self, _: &'a str) -> Answer<'a, Identity> {
        Box::pin(async { Ok(Identity::default()) })
    }
}
