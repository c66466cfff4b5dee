//! `palisade act`: what a pod of ours runs: one order, one fence agent, one report.
//!
//! Promise (I6): it ends with 0 only if the order was taken, and it leaves a report whatever happens: an order that cannot be followed,
//! a panic, a pod that is deleted in the middle. What was begun and not seen to its end is Unknown.
//! Promise (I7): what it was told in confidence is neither in the report nor in a log, nor in what a panic prints.
//!
//! | file | is |
//! |---|---|
//! | `secrets` | the files that secrets are mounted at |
//! | `task` | what is done |
//! | `diary` | what has been done so far |

mod diary;
mod secrets;
mod task;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use palisade_devices::Failure;
use palisade_devices::act::{Order, Report, Verdict};
use palisade_devices::agent::Agent;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use self::diary::Diary;
use self::task::Work;

/// What is kept of the time, at most, to end what was killed and to write the report.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a pod is started with.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The order, as JSON
    #[arg(long, value_name = "FILE", default_value = "/etc/palisade/order/order")]
    order: PathBuf,
    /// Where the order's secrets are mounted
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/palisade/secrets")]
    secrets: PathBuf,
    /// Where the report is written, which the kubelet puts into the pod's status
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    report: PathBuf,
}

/// Follows one order, and reports.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    keep_panics_quiet();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start the runtime")?;
    let report = runtime.block_on(follow(options));
    // Whoever has left its process group keeps a stream open: nobody waits for that.
    runtime.shutdown_background();
    log(&report);
    write(&options.report, &report)?;
    Ok(if report.verdict == Verdict::Taken { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A panic prints where it was, and no value: a message may hold one that it should not.
fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(|| "somewhere".to_owned(), ToString::to_string);
        let _nobody_reads_it = writeln!(std::io::stderr(), "panic at {place}");
    }));
}

/// Follows the order to its end, or until somebody ends the pod.
async fn follow(options: &Options) -> Report {
    let (start, diary) = (Instant::now(), Diary::starting_now());
    let order = std::fs::read_to_string(&options.order);
    let order = order.map_err(|why| format!("the order at {} cannot be read: {why}", options.order.display()));
    let order = match order.and_then(|text| Order::read(&text).map_err(|why| why.to_string())) {
        Ok(order) => order,
        Err(why) => return diary.report(Verdict::Refused, why),
    };
    // In a task of its own, so that a panic ends the task and not the report.
    let mut work = tokio::spawn(carry_out(order, options.secrets.clone(), start, diary.clone()));
    tokio::select! {
        done = &mut work => match done {
            Ok((verdict, said)) => diary.report(verdict, said),
            Err(_panic) => diary.report(Verdict::Unknown, "a fault in Palisade; please report it with the pod's log".to_owned()),
        },
        said = asked_to_stop() => {
            // What it runs is killed with it.
            work.abort();
            let _aborted = work.await;
            diary.report(Verdict::Unknown, said)
        }
    }
}

async fn carry_out(order: Order, secrets: PathBuf, start: Instant, diary: Diary) -> (Verdict, String) {
    let within = order.within();
    let until = start + within.saturating_sub(LAST_WORDS.min(within / 10));
    let agent = match find(&order, &secrets, until).await {
        Ok(agent) => agent,
        Err(Failure::Refused(why)) => return (Verdict::Refused, why),
        Err(Failure::Unknown(why)) => return (Verdict::Unknown, why),
    };
    let plug = order.plug.as_deref().unwrap_or_default();
    let work = Work { agent: &agent, plug, until, half: start + within / 2, diary: &diary };
    work.carry_out(order.task).await
}

async fn find(order: &Order, secrets: &Path, until: Instant) -> Result<Agent, Failure> {
    let (parameters, around) = secrets::told(order, secrets).map_err(Failure::Refused)?;
    Agent::find(&order.agent, &parameters, &around, until).await
}

/// Ends when somebody ends the pod.
async fn asked_to_stop() -> String {
    let kinds = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = kinds else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    "the pod was ended before the agent was; the agent was killed, and nobody knows what it did".to_owned()
}

/// For people, in the pod's log.
fn log(report: &Report) {
    let verdict = match report.verdict {
        Verdict::Taken => "taken",
        Verdict::Refused => "refused",
        Verdict::Unknown => "unknown",
    };
    let looks = match report.looks.last() {
        Some(last) => format!("; {} looks, the last one shows {:?}", report.looks.len(), last.state),
        None => String::new(),
    };
    let line = format!("{verdict} after {} ms: {}{looks}", report.took_ms, report.said);
    let _nobody_reads_it = writeln!(std::io::stderr(), "{line}");
}

/// Into the file that is there: the kubelet has mounted it.
fn write(file: &Path, report: &Report) -> anyhow::Result<()> {
    std::fs::write(file, report.text()).with_context(|| format!("failed to write the report to {}", file.display()))
}
