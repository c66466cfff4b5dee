//! `palisade sim`: the whole operator in virtual time, from a seed, with everything going wrong; told line by line.
//!
//! Promise: what it prints comes from the trace and from the truth of the run (`palisade-sim`); the same seed prints the
//! same. The exit code says whether a promise was broken.
//!
//! | file | is |
//! |---|---|
//! | `one` | one seed, whole or up to a line, told |
//! | `many` | many seeds, only what breaks is told; how often everything was reached |
//! | `page` | lines at 120 columns |

mod many;
mod one;
mod page;

use std::io;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, bail};

/// What a person can choose.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["seed", "seeds"])))]
pub(crate) struct Options {
    /// Run this seed, and tell what each actor saw, decided and did
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Stop right after this line of the timeline, and show how everything stood
    #[arg(long, value_name = "EVENT", conflicts_with = "seeds")]
    until: Option<u64>,
    /// Tell only what this actor did, such as palisade-0 or kubelet/n1; may be given more than once
    #[arg(long, value_name = "NAME", conflicts_with = "seeds")]
    actor: Vec<String>,
    /// Tell only what is about this node; may be given more than once
    #[arg(long, value_name = "NAME", conflicts_with = "seeds")]
    node: Vec<String>,
    /// Run all these seeds, both ends included, and tell only which of them break something
    #[arg(long, value_name = "FROM..TO")]
    seeds: Option<Seeds>,
    /// How many seeds run at once; as many as there are cores if not given
    #[arg(long, value_name = "NUMBER", requires = "seeds", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Tell how often everything was reached; with --seeds, what was never reached is a failure
    #[arg(long)]
    coverage: bool,
}

/// Seeds from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    from: u64,
    to: u64,
}

impl Seeds {
    fn count(self) -> u64 {
        self.to - self.from + 1
    }
}

impl FromStr for Seeds {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (from, to) = text.split_once("..").context("two numbers with `..` between them, such as 1..2000")?;
        let number = |text: &str| text.parse::<u64>().with_context(|| format!("{text:?} is not a number"));
        let (from, to) = (number(from)?, number(to)?);
        if from > to || to == u64::MAX {
            bail!("{from} to {to} are no seeds");
        }
        Ok(Self { from, to })
    }
}

/// Runs what was chosen.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let ran = match (options.seed, options.seeds) {
        (Some(seed), _) => one::run(seed, options, &mut io::stdout().lock()),
        (None, Some(seeds)) => many::run(seeds, options, &mut io::stdout().lock()),
        (None, None) => bail!("neither --seed nor --seeds"),
    };
    match ran {
        Ok(good) => Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        // As with `| head`: whoever listened has heard enough.
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::FAILURE),
        Err(why) => Err(why).context("failed to tell what happened"),
    }
}

/// What a person types to see a run up to a line again.
fn replay(seed: u64, line: Option<u64>) -> String {
    line.map_or_else(
        || format!("palisade sim --seed {seed}"),
        |line| format!("palisade sim --seed {seed} --until {line}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_two_numbers() {
        assert_eq!("1..2000".parse::<Seeds>().unwrap(), Seeds { from: 1, to: 2000 });
        assert_eq!("7..7".parse::<Seeds>().unwrap().count(), 1);
        for bad in ["7", "9..3", "a..b", "1..-2", "..", "0..18446744073709551615"] {
            assert!(bad.parse::<Seeds>().is_err(), "{bad}");
        }
    }
}
