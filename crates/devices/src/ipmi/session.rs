//! IPMI / session: questions and answers with a BMC that both sides have proven themselves to.
//!
//! Promise: an answer counts only if its code fits, it is new, and it is to this very request. A request that is repeated keeps
//! its number in the message, so that the BMC can tell, and gets a new one in the packet, so that it is not taken for a replay.
//! The session is closed at the end, and when whoever uses it is dropped: a BMC has few.

use ring::rand::{SecureRandom as _, SystemRandom};

use super::codes::{self, BUSY, DONE};
use super::keys::Keys;
use super::login::Privilege;
use super::message::{APP, Reply, Request, SEQUENCES};
use super::patience::{self, Heard, Judged, Limits, PAUSE};
use super::seal;
use super::window::Window;
use super::wire::Line;
use crate::{Failure, Permit};

const SET_SESSION_PRIVILEGE: u8 = 0x3b;
const CLOSE_SESSION: u8 = 0x3c;

/// How often a BMC may say that it is busy.
const BUSY_TRIES: u32 = 3;

/// What the handshake came to.
pub(super) struct Agreed {
    pub(super) keys: Keys,
    pub(super) console_session: u32,
    pub(super) bmc_session: u32,
}

/// A session.
pub(super) struct Session {
    line: Box<dyn Line>,
    agreed: Agreed,
    limits: Limits,
    random: SystemRandom,
    /// The number of the last packet.
    sequence: u32,
    /// The number of the last request.
    request: u8,
    window: Window,
    open: bool,
}

/// An answer.
pub(super) struct Asked {
    pub(super) reply: Reply,
    /// How many datagrams of this request have no answer: what became of those, nobody knows.
    pub(super) unanswered: u32,
}

impl Session {
    pub(super) fn new(line: Box<dyn Line>, agreed: Agreed, limits: Limits, random: SystemRandom) -> Self {
        Self { line, agreed, limits, random, sequence: 0, request: 0, window: Window::default(), open: true }
    }

    /// Takes up a privilege: a session begins with that of a user, whatever was agreed on.
    pub(super) async fn raise(&mut self, privilege: Privilege) -> Result<(), Failure> {
        let asked = format!("taking up the privilege {privilege}");
        let level = [privilege.number()];
        let request = Request { function: APP, command: SET_SESSION_PRIVILEGE, data: &level };
        let reply = self.ask(&request, &asked, None).await?.reply;
        match (reply.code, reply.data.as_slice()) {
            (DONE, [now, ..]) if now & 0x0f >= privilege.number() => Ok(()),
            (DONE, [_, ..]) | (0x80 | 0x81, _) => Err(Failure::Refused(format!(
                "this user may not act as {privilege}; give it that privilege for IPMI over LAN at the BMC, and see that the \
                 channel allows it"
            ))),
            (DONE, []) => Err(Failure::Unknown(format!("{asked}: the BMC did not say whether it did"))),
            (code, _) => Err(codes::not_done(code, &asked)),
        }
    }

    /// Asks, for as long as the BMC is busy, and `permit` says yes.
    pub(super) async fn ask(
        &mut self,
        request: &Request<'_>,
        asked: &str,
        permit: Option<&dyn Permit>,
    ) -> Result<Asked, Failure> {
        let mut unanswered = 0;
        let mut tries = BUSY_TRIES;
        loop {
            let heard = self.exchange(request, self.limits, permit).await;
            let heard = match heard {
                // It is too late now; but what was sent before that has no answer either.
                Err(Failure::Refused(why)) if unanswered > 0 => {
                    return Err(Failure::Unknown(format!("{asked}: {why}")));
                }
                heard => heard?,
            };
            let (reply, more) = match heard {
                Heard::Answer(reply, more) => (reply, more),
                Heard::Silence(silence) => return Err(Failure::Unknown(silence.told(asked))),
            };
            unanswered += more;
            tries -= 1;
            if reply.code != BUSY || tries == 0 {
                return Ok(Asked { reply, unanswered });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Closes the session, as far as the BMC answers.
    pub(super) async fn close(mut self) {
        let session = self.agreed.bmc_session.to_le_bytes();
        let request = Request { function: APP, command: CLOSE_SESSION, data: &session };
        // What we came for is done. If nobody answers, it is said once more by `drop`, and not waited for.
        let limits = Limits { tries: 1, ..self.limits };
        if let Ok(Heard::Answer(..)) = self.exchange(&request, limits, None).await {
            self.open = false;
        }
    }

    async fn exchange(
        &mut self,
        request: &Request<'_>,
        limits: Limits,
        permit: Option<&dyn Permit>,
    ) -> Result<Heard<Reply>, Failure> {
        self.request = (self.request + 1) & SEQUENCES;
        let number = self.request;
        let message = request.bytes(number);
        let Self { line, agreed, random, sequence, window, .. } = self;
        let datagram = || {
            *sequence = sequence.wrapping_add(1).max(1);
            sealed(agreed, random, *sequence, &message)
        };
        let judge = |datagram: &[u8]| {
            let opened = seal::open(&agreed.keys, agreed.console_session, datagram);
            let opened = opened.filter(|opened| window.is_new(opened.sequence));
            let reply = opened.and_then(|opened| request.answered_by(&opened.message, number));
            reply.map_or(Judged::NotOurs, Judged::Answer)
        };
        patience::ask(&**line, &limits, permit, datagram, judge).await
    }
}

fn sealed(agreed: &Agreed, random: &SystemRandom, sequence: u32, message: &[u8]) -> Result<Vec<u8>, Failure> {
    let packet = seal::seal(&agreed.keys, agreed.bmc_session, sequence, dice(random)?, message);
    packet.ok_or_else(|| Failure::Refused("a message is too long for IPMI".to_owned()))
}

/// Random bytes.
pub(super) fn dice<const N: usize>(random: &SystemRandom) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let none = |_| Failure::Refused("this system has no random numbers, and without them nothing is secret".to_owned());
    random.fill(&mut bytes).map_err(none)?;
    Ok(bytes)
}

impl Drop for Session {
    /// Whoever gives up in the middle, for want of time, must not leave the BMC with a session less.
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let session = self.agreed.bmc_session.to_le_bytes();
        let request = Request { function: APP, command: CLOSE_SESSION, data: &session };
        let message = request.bytes(self.request.wrapping_add(1));
        let next = self.sequence.wrapping_add(1).max(1);
        if let Ok(packet) = sealed(&self.agreed, &self.random, next, &message) {
            let _ = self.line.send(&packet);
        }
    }
}
