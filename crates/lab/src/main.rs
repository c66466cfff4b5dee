//! `palisade-lab`: raises a lab, plays with it, takes it down. `cargo xtask lab` builds what it needs and calls it.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the lab lives in real time")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Parser, Subcommand, ValueEnum};
use palisade_lab::lab::{Lab, Programs, Shape};
use palisade_lab::machine::Machine;
use palisade_lab::measure::{By, Device, Fault};
use palisade_lab::run::Run;
use palisade_lab::surroundings::TROUBLES;
use palisade_lab::trial::Choice;
use palisade_lab::{bmc, install, interrupt, leftovers, measure, network, stories, trial};
use palisade_scenarios::catalogue::NAMES;

/// What `--only` calls the checks of every API server and its controllers.
const CONFORMANCE: &str = "conformance";
/// What it calls the clearing away of a lab that crashed.
const RUINS: &str = "ruins";

/// A real Kubernetes on this machine, whose machines can be switched off.
#[derive(Parser)]
#[command(name = "cargo xtask lab", bin_name = "cargo xtask lab", arg_required_else_help = true)]
struct Arguments {
    /// Which lab, if there are several (`status` shows them)
    #[arg(long, global = true, value_name = "NUMBER")]
    lab: Option<u8>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Raise a lab; Ctrl-C takes it down again
    Up {
        /// How many machines
        #[arg(long, default_value_t = 4)]
        machines: u8,
        /// How many failure domains they are dealt out to
        #[arg(long, default_value_t = 1)]
        zones: u8,
        /// Leave it up and return; `down` ends it
        #[arg(long)]
        detach: bool,
        /// Do not start Palisade in it
        #[arg(long)]
        without_palisade: bool,
        #[command(flatten)]
        programs: Built,
    },
    /// Take labs down, whole or in ruins: the one of --lab, or all
    Down,
    /// Show the labs that are there, and their machines
    Status,
    /// Pull a machine's plug
    PowerOff { machine: String },
    /// Press a machine's button
    PowerOn { machine: String },
    /// Cut a machine off while it goes on running
    Partition {
        machine: String,
        /// What it loses
        #[arg(long, value_enum, default_value_t = Link::All)]
        link: Link,
    },
    /// Give a machine everything back that was cut
    Heal { machine: String },
    /// Tell the stories that real time allows, on labs of their own, and take these down
    Test {
        /// Only this story or trouble, `conformance` or `ruins`; may be given more than once
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// Every story of the catalogue that this lab can tell, however long it takes
        #[arg(long, conflicts_with = "only")]
        all: bool,
        /// On how many labs side by side
        #[arg(long, default_value_t = 3)]
        labs: usize,
        #[command(flatten)]
        programs: Built,
    },
    /// Fail a node under a database again and again, and say how long each part of the failover took
    Measure {
        /// How many times
        #[arg(long, default_value_t = 10)]
        runs: u32,
        /// How the node fails
        #[arg(long, value_enum, default_value_t = Fault::Power)]
        fault: Fault,
        /// By what that is noticed
        #[arg(long, value_enum, default_value_t = By::Lease)]
        by: By,
        /// By what it is switched off
        #[arg(long, value_enum, default_value_t = Device::Redfish)]
        device: Device,
        /// Without Palisade: what Kubernetes does by itself
        #[arg(long, conflicts_with_all = ["runs", "fault", "by", "device"])]
        alone: bool,
        #[command(flatten)]
        programs: Built,
    },
    /// Serve the BMCs of a lab (a lab calls this itself)
    #[command(hide = true)]
    Bmcs { number: u8 },
    /// Look at the power of a machine, or switch it, for the IPMI side of its BMC (which calls this)
    #[command(hide = true)]
    Chassis { number: u8, machine: String, words: Vec<String> },
}

/// Where our programs are; left out: beside this one.
#[derive(clap::Args)]
struct Built {
    /// The `palisade` binary that runs in the lab
    #[arg(long, value_name = "FILE")]
    palisade: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Link {
    /// The whole cable
    All,
    /// The way to the API server
    Api,
    /// The way to everybody else
    Peers,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let Arguments { lab, command } = Arguments::parse();
    match command {
        Command::Up { machines, zones, detach, without_palisade, programs } => {
            up(Shape { machines, zones }, programs.found()?, detach, !without_palisade).await?;
        }
        Command::Down => down(lab)?,
        Command::Status => status(),
        Command::PowerOff { machine } => with(lab, &machine, |_, machine| machine.off())?,
        Command::PowerOn { machine } => with(lab, &machine, |_, machine| machine.on())?,
        Command::Partition { machine, link } => with(lab, &machine, |run, machine| match link {
            Link::All => network::plug(run, machine.name(), false),
            Link::Api => network::cut(run, machine.name(), network::Link::Api),
            Link::Peers => network::cut(run, machine.name(), network::Link::Peers),
        })?,
        Command::Heal { machine } => with(lab, &machine, |run, machine| {
            network::plug(run, machine.name(), true)?;
            network::heal(run, machine.name(), network::Link::Api)?;
            network::heal(run, machine.name(), network::Link::Peers)
        })?,
        Command::Test { only, all, labs, programs } => {
            if !trial::run(&chosen(&only, all)?, labs, programs.found()?).await? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Measure { runs, fault, by, device, alone, programs } => {
            measured(programs.found()?, (!alone).then_some((fault, by, device, runs))).await?;
        }
        Command::Chassis { number, machine, words } => {
            let lab = Lab::open(Run::numbered(number)?)?;
            print!("{}", bmc::Bmc::of(lab.run(), lab.machine(&machine)?).chassis(&words)?);
        }
        Command::Bmcs { number } => {
            let lab = Lab::open(Run::numbered(number)?)?;
            bmc::serve(lab.run(), lab.machines()).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Built {
    fn found(&self) -> Result<Programs> {
        let lab = std::env::current_exe().context("cannot tell where this program is")?;
        let beside = |name: &str| lab.with_file_name(name);
        let programs = Programs {
            palisade: self.palisade.clone().unwrap_or_else(|| beside("palisade")).canonicalize().unwrap_or_default(),
            san: beside("palisade-san"),
            attacher: beside("palisade-attacher"),
            lab,
        };
        for program in [&programs.palisade, &programs.san, &programs.attacher] {
            if !program.is_file() {
                bail!("{} is not built; `cargo xtask lab` builds it", program.display());
            }
        }
        Ok(programs)
    }
}

async fn up(shape: Shape, programs: Programs, detach: bool, palisade: bool) -> Result<()> {
    let begin = std::time::Instant::now();
    let mut tell = |what: &str| println!("{:>5.1} s  {what}", begin.elapsed().as_secs_f32());
    let lab = Lab::new(shape, programs, &mut tell)?;
    let raised = tokio::select! {
        raised = raise(&lab, palisade, &mut tell) => raised,
        () = interrupt::asked() => Err(anyhow!("interrupted")),
    };
    if let Err(why) = raised {
        if std::env::var_os("PALISADE_LAB_KEEP").is_none() {
            lab.down()?;
        }
        return Err(why);
    }
    let run = lab.run();
    println!("{:>5.1} s  lab {} is up: {} machines", begin.elapsed().as_secs_f32(), run.number(), shape.machines);
    println!();
    println!("  export KUBECONFIG={}", lab.kubeconfig().display());
    println!("  kubectl get nodes,pods -A");
    println!("  cargo xtask lab power-off n2");
    println!();
    if detach {
        println!("`cargo xtask lab down` ends it.");
        return Ok(());
    }
    println!("Ctrl-C ends it.");
    interrupt::asked().await;
    println!("clearing away");
    lab.down()
}

/// What is to be tried.
fn chosen(only: &[String], all: bool) -> Result<Choice> {
    let told = |name: &&str| all && !stories::UNTOLD.contains(name) || stories::TOLD.contains(name);
    if only.is_empty() {
        return Ok(Choice {
            stories: NAMES.iter().copied().filter(told).collect(),
            troubles: TROUBLES.to_vec(),
            conformance: true,
            ruins: true,
            rights: true,
        });
    }
    let mut choice = Choice::default();
    for name in only {
        let story = NAMES.iter().find(|told| *told == name);
        let trouble = TROUBLES.iter().find(|trouble| trouble.name == name);
        choice.stories.extend(story);
        choice.troubles.extend(trouble);
        if name == CONFORMANCE {
            choice.conformance = true;
        } else if name == RUINS {
            choice.ruins = true;
        } else if story.is_none() && trouble.is_none() {
            let troubles: Vec<&str> = TROUBLES.iter().map(|trouble| trouble.name).collect();
            bail!(
                "there is no test {name}; there are {CONFORMANCE}, {RUINS}, {}, {}",
                troubles.join(", "),
                NAMES.join(", ")
            );
        }
    }
    Ok(choice)
}

/// Measures on a lab of its own, which is gone afterwards.
async fn measured(programs: Programs, how: Option<(Fault, By, Device, u32)>) -> Result<()> {
    let mut tell = |what: &str| println!("{what}");
    let lab = Lab::new(Shape { machines: 4, zones: 1 }, programs, &mut tell)?;
    let measure = async {
        lab.raise(&mut tell).await?;
        match how {
            Some((.., Device::Liar, runs)) => measure::lies(&lab, runs).await?,
            Some((fault, by, device, runs)) => {
                measure::show(&measure::failovers(&lab, fault, by, device, runs).await?);
            }
            None => println!("{}", measure::alone(&lab).await?),
        }
        Ok(())
    };
    let outcome = tokio::select! {
        outcome = measure => outcome,
        () = interrupt::asked() => Err(anyhow!("interrupted")),
    };
    lab.down()?;
    outcome
}

async fn raise(lab: &Lab, palisade: bool, tell: &mut dyn FnMut(&str)) -> Result<()> {
    lab.raise(tell).await?;
    if palisade {
        tell("starting Palisade");
        install::deployed(&lab.client().await?).await?;
    }
    Ok(())
}

fn down(lab: Option<u8>) -> Result<()> {
    let labs = match lab {
        Some(number) => vec![Run::numbered(number)?],
        None => Run::all(),
    };
    if labs.is_empty() {
        println!("there is no lab");
    }
    for run in labs {
        leftovers::clear(run)?;
        println!("lab {} is gone", run.number());
    }
    Ok(())
}

fn status() {
    let labs = Run::all();
    if labs.is_empty() {
        println!("there is no lab; `cargo xtask lab up` raises one");
    }
    for run in labs {
        match Lab::open(run) {
            Ok(lab) => {
                println!("lab {}: KUBECONFIG={}", run.number(), lab.kubeconfig().display());
                for machine in lab.machines() {
                    let power = if machine.is_on() { "on" } else { "off" };
                    println!("  {} {power}, {} boots", machine.name(), machine.boots());
                }
            }
            Err(why) => println!("lab {}: {why:#}", run.number()),
        }
    }
}

/// Does something to a machine of the lab that is meant.
fn with(lab: Option<u8>, machine: &str, act: impl FnOnce(Run, &Machine) -> Result<()>) -> Result<()> {
    let run = match (lab, Run::all().as_slice()) {
        (Some(number), _) => Run::numbered(number)?,
        (None, [only]) => *only,
        (None, []) => bail!("there is no lab; `cargo xtask lab up` raises one"),
        (None, several) => {
            let numbers: Vec<String> = several.iter().map(|run| run.number().to_string()).collect();
            bail!("there are labs {}; say which with --lab", numbers.join(", "));
        }
    };
    let lab = Lab::open(run)?;
    act(run, lab.machine(machine)?)
}
