//! Operator / log: text for people, JSON for machines, and as much as PALISADE_LOG asks for.

use std::io;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// What says how much is logged.
const HOW_MUCH: &str = "PALISADE_LOG";
/// What is logged unless somebody says otherwise. The client logs each of its tries; what comes of them is for us to say, once.
const USUAL: &str = "info,kube_client=off,kube_runtime=off";

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// From here on, logs are written to stderr.
pub(super) fn start(form: Form) -> anyhow::Result<()> {
    let wanted = std::env::var(HOW_MUCH).ok().filter(|wanted| !wanted.is_empty());
    let wanted = wanted.unwrap_or_else(|| USUAL.to_owned());
    let filter = EnvFilter::builder()
        .parse(&wanted)
        .with_context(|| format!("{HOW_MUCH}={wanted} is no filter; try `debug`, or `info,palisade::decided=debug`"))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match form {
        Form::Text => logs.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).try_init(),
        Form::Json => logs.json().flatten_event(true).try_init(),
    };
    started.map_err(|why| anyhow::anyhow!("failed to start the log: {why}"))
}
