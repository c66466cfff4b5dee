//! IPMI / patience: a datagram, the wait for its answer, and the same once more.
//!
//! Promise: a question ends after a number of datagrams and a time that are known before, however much comes that is no
//! answer. A [`Permit`] is asked immediately before each datagram that it is for, the repeated ones too.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::wire::Line;
use crate::{Failure, Late, Permit};

/// How long until a network that has just failed is tried again: it tells so at once, and would else use up all tries at once.
pub(super) const PAUSE: Duration = Duration::from_millis(250);

/// How long we wait, and how often we ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For the answer to the first datagram of a question. The next one waits twice as long, the third three times.
    pub first_wait: Duration,
    /// Datagrams for one question.
    pub tries: u32,
    /// For a whole call, with login and all.
    pub whole: Duration,
}

impl Default for Limits {
    /// A silent BMC costs 10 s. Each call has its template's `timeout` besides, 25 s unless told otherwise.
    fn default() -> Self {
        Self { first_wait: Duration::from_secs(1), tries: 4, whole: Duration::from_secs(20) }
    }
}

/// What a datagram is for a question.
pub(super) enum Judged<T> {
    /// Not for this question: forged, spoilt, late, or of something else.
    NotOurs,
    /// An answer that fails its proof. It counts only if no better one comes until the wait is over: anyone can send one.
    Doubtful(T),
    /// The answer.
    Answer(T),
}

/// What a question came to.
pub(super) enum Heard<T> {
    /// An answer, and how many datagrams of ours have none.
    Answer(T, u32),
    /// None.
    Silence(Silence),
}

/// Nobody answered.
#[derive(Debug)]
pub(super) struct Silence {
    /// How many datagrams left us.
    pub(super) sent: u32,
    /// What the network said.
    trouble: Option<io::Error>,
    /// Why it was not sent more often.
    late: Option<Late>,
}

impl Silence {
    /// In words: what was asked, how often, and what is known about the reason.
    pub(super) fn told(&self, asked: &str) -> String {
        let times = match self.sent {
            0 => "could not be sent".to_owned(),
            1 => "was sent once and not answered".to_owned(),
            times => format!("was sent {times} times and not answered"),
        };
        let why = match &self.trouble {
            Some(why) if why.kind() == io::ErrorKind::ConnectionRefused => {
                ": nothing listens on that port; is IPMI over LAN switched on at the BMC, and `ipport` right?"
                    .to_owned()
            }
            Some(why) => format!(": {why}"),
            None => String::new(),
        };
        let late = self.late.as_ref().map(|Late(why)| format!("; it may not be repeated: {why}")).unwrap_or_default();
        format!("{asked} {times}{why}{late}")
    }

    /// Whether the network itself has said why.
    pub(super) fn is_explained(&self) -> bool {
        self.trouble.is_some()
    }
}

/// Asks until there is an answer or no patience left.
pub(super) async fn ask<T>(
    line: &dyn Line,
    limits: &Limits,
    permit: Option<&dyn Permit>,
    mut datagram: impl FnMut() -> Result<Vec<u8>, Failure> + Send,
    mut judge: impl FnMut(&[u8]) -> Judged<T> + Send,
) -> Result<Heard<T>, Failure> {
    let mut silence = Silence { sent: 0, trouble: None, late: None };
    for attempt in 1..=limits.tries {
        let packet = datagram()?;
        let wait = match send(line, permit, &packet).await {
            Ok(()) => {
                silence.sent += 1;
                limits.first_wait * attempt
            }
            Err(NotSent::Late(late)) if silence.sent == 0 => return Err(late.into()),
            // What was sent before may still be answered.
            Err(NotSent::Late(late)) => {
                silence.late = Some(late);
                limits.first_wait
            }
            Err(NotSent::Broken(why)) => {
                silence.trouble = Some(why);
                PAUSE
            }
        };
        if let Some(answer) = listen(line, Instant::now() + wait, &mut judge, &mut silence.trouble).await {
            return Ok(Heard::Answer(answer, silence.sent.saturating_sub(1)));
        }
        if silence.late.is_some() {
            break;
        }
    }
    Ok(Heard::Silence(silence))
}

enum NotSent {
    Late(Late),
    Broken(io::Error),
}

async fn send(line: &dyn Line, permit: Option<&dyn Permit>, packet: &[u8]) -> Result<(), NotSent> {
    loop {
        line.ready().await.map_err(NotSent::Broken)?;
        // The last look at the clock is here: what follows sends now or not at all.
        if let Some(permit) = permit {
            permit.may_send().map_err(NotSent::Late)?;
        }
        match line.send(packet) {
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {}
            sent => return sent.map_err(NotSent::Broken),
        }
    }
}

async fn listen<T>(
    line: &dyn Line,
    mut until: Instant,
    judge: &mut (impl FnMut(&[u8]) -> Judged<T> + Send),
    trouble: &mut Option<io::Error>,
) -> Option<T> {
    let mut doubtful = None;
    // A flood of datagrams must not make us deaf for the time: a wait that never has to wait does not look at it.
    while Instant::now() < until {
        match timeout_at(until, line.receive()).await {
            Ok(Ok(datagram)) => match judge(&datagram) {
                Judged::Answer(answer) => return Some(answer),
                Judged::Doubtful(answer) => doubtful = Some(answer),
                Judged::NotOurs => {}
            },
            Ok(Err(why)) => {
                *trouble = Some(why);
                until = until.min(Instant::now() + PAUSE);
                // An error that is told again and again would keep this loop busy.
                tokio::time::sleep(PAUSE / 10).await;
            }
            Err(_) => break,
        }
    }
    doubtful
}
