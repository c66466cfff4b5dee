//! IPMI / handshake: from a line to keys that only the BMC and we have.
//!
//! Promise: the BMC proves that it knows the password before we prove that we do (RAKP 2 before 3), and that it has the same
//! keys before anything is said with them (RAKP 4). A session always has authentication, integrity and confidentiality.
//! Never: a session of IPMI 1.5, a suite that was not asked for, or a command: a handshake that fails has done nothing.
//!
//! ```text
//! what can you do?  ->   <- this
//! open a session    ->   <- session, algorithms
//! RAKP 1: random, role, user            ->   <- RAKP 2: random, GUID, proof
//! RAKP 3: proof                         ->   <- RAKP 4: proof of the keys
//! ```
//! A BMC that has answered a step may not answer it again. If an answer is lost, all begins anew, with a new random number.

use ring::rand::SystemRandom;

use super::capabilities::{self, Capabilities};
use super::codes;
use super::keys::Told;
use super::login::{Login, Suite};
use super::packet::{self, Kind, Reader};
use super::patience::{self, Heard, Judged, Limits};
use super::session::{Agreed, dice};
use super::wire::Line;
use crate::Failure;

/// How often all begins anew.
const ROUNDS: u32 = 2;

/// How often a suite is asked for while there is another one: some BMCs do not answer at all to one that they do not know.
const TRIES_BEFORE_ANOTHER: u32 = 2;

/// A user is looked up by its name alone.
const BY_NAME: u8 = 0x10;

/// What we say of a proof that is none.
const WRONG_PROOF: u8 = 0x0f;

/// Everything that a handshake needs.
pub(super) struct Handshake<'a> {
    pub(super) line: &'a dyn Line,
    pub(super) login: &'a Login,
    pub(super) limits: &'a Limits,
    pub(super) random: &'a SystemRandom,
    /// The number of the last step: an answer tells it.
    pub(super) tag: u8,
}

/// Why a round came to nothing.
enum Stumble {
    /// The BMC does not have this suite.
    Suite(Failure),
    /// Something was lost on the way.
    Lost(Failure),
    /// It makes no sense to try again.
    Over(Failure),
}

impl From<Failure> for Stumble {
    fn from(why: Failure) -> Self {
        Self::Over(why)
    }
}

/// An answer to a step: what it holds, or the status that refuses.
type Step<T> = Result<T, u8>;

/// The two names of a session: ours, and the BMC's.
struct Opened {
    console_session: u32,
    bmc_session: u32,
}

impl<'a> Handshake<'a> {
    /// Agrees on a session with the first of these suites that the BMC has.
    pub(super) async fn agree(&mut self, suites: &[Suite]) -> Result<(Suite, Agreed), Failure> {
        let capabilities = self.capabilities().await?;
        if capabilities.ipmi_2 == Some(false) {
            return Err(Failure::Refused(
                "this BMC takes no sessions of IPMI 2.0, and those of 1.5 are not safe; renew its firmware, or use another way"
                    .to_owned(),
            ));
        }
        let mut why = Failure::Refused("no cipher suite is allowed".to_owned());
        for (index, suite) in suites.iter().enumerate() {
            let last = index + 1 == suites.len();
            for _ in 0..ROUNDS {
                match self.round(*suite, last, capabilities).await {
                    Ok(agreed) => return Ok((*suite, agreed)),
                    Err(Stumble::Over(told)) => return Err(told),
                    Err(Stumble::Lost(told)) => why = told,
                    Err(Stumble::Suite(told)) => {
                        why = told;
                        break;
                    }
                }
            }
        }
        Err(why)
    }

    async fn capabilities(&self) -> Result<Capabilities, Failure> {
        let question = capabilities::question(self.login.privilege.number());
        let request = capabilities::request(&question);
        let datagram = || packet::plain(&request.bytes(0)).ok_or_else(too_long);
        let judge = |datagram: &[u8]| {
            let reply = packet::read_plain(datagram).and_then(|message| request.answered_by(message, 0));
            reply.map_or(Judged::NotOurs, Judged::Answer)
        };
        match patience::ask(self.line, self.limits, None, datagram, judge).await? {
            Heard::Answer(reply, _) => Ok(Capabilities::of(&reply)),
            Heard::Silence(silence) => {
                let told = silence.told("the question what the BMC can do");
                let hint = if silence.is_explained() {
                    ""
                } else {
                    "; it is without power or network, IPMI over LAN is switched off there, a firewall drops UDP, or `ip` is wrong"
                };
                Err(Failure::Unknown(format!("{told}{hint}")))
            }
        }
    }

    async fn round(&mut self, suite: Suite, last: bool, capabilities: Capabilities) -> Result<Agreed, Stumble> {
        let opened = self.open(suite, last).await?;
        let (told, again) = self.prove_bmc(suite, &opened).await?;
        let keys = told.keys();
        let mut rakp3 = self.begin(0, opened.bmc_session);
        rakp3.extend(told.our_proof());
        let judge = |bytes: &mut Reader<'_>| {
            let proof = bytes.take(suite.short_code())?;
            Some((told.agreed_by(&keys, proof), ()))
        };
        let heard = self.step(Kind::Rakp3, &rakp3, Kind::Rakp4, opened.console_session, self.limits, judge).await?;
        match heard {
            Heard::Silence(silence) => Err(Stumble::Lost(Failure::Unknown(silence.told("the last step of the login")))),
            // What was said before is what the BMC refers to: if that was sent twice, it may mean the other one.
            Heard::Answer(Err(status), more) => {
                let why = codes::not_let_in(status, self.login, "RAKP 4");
                Err(if again || more > 0 { Stumble::Lost(why) } else { Stumble::Over(why) })
            }
            Heard::Answer(Ok((true, ())), _) => {
                Ok(Agreed { keys, console_session: opened.console_session, bmc_session: opened.bmc_session })
            }
            Heard::Answer(Ok((false, ())), _) => Err(Stumble::Over(self.other_keys(capabilities))),
        }
    }

    async fn open(&mut self, suite: Suite, last: bool) -> Result<Opened, Stumble> {
        // Zero is no session.
        let console_session = u32::from_le_bytes(dice(self.random)?).max(1);
        self.tag = self.tag.wrapping_add(1);
        let mut request = vec![self.tag, self.login.privilege.number(), 0, 0];
        request.extend(console_session.to_le_bytes());
        request.extend(proposal(suite));
        let judge = |bytes: &mut Reader<'_>| {
            let bmc_session = bytes.number().filter(|session| *session != 0)?;
            let chosen = bytes.array::<24>()?;
            // Only the numbers count: some BMCs leave the lengths in between empty.
            let numbers = |part: [u8; 24]| [part[4], part[12], part[20]];
            Some((numbers(chosen) == numbers(proposal(suite)), bmc_session))
        };
        let tries = if last { self.limits.tries } else { self.limits.tries.min(TRIES_BEFORE_ANOTHER) };
        let limits = Limits { tries, ..*self.limits };
        let step = self.step(Kind::OpenSession, &request, Kind::OpenSessionReply, console_session, &limits, judge);
        match step.await? {
            Heard::Answer(Ok((true, bmc_session)), _) => Ok(Opened { console_session, bmc_session }),
            Heard::Answer(Ok((false, _)), _) => Err(Stumble::Suite(Failure::Refused(format!(
                "the BMC answers cipher suite {suite} with another one; switch it on there, or name another in `cipher`"
            )))),
            Heard::Answer(Err(status), _) => {
                let why =
                    codes::not_let_in(status, self.login, &format!("opening a session with cipher suite {suite}"));
                Err(if codes::is_about_the_suite(status) { Stumble::Suite(why) } else { Stumble::Over(why) })
            }
            Heard::Silence(silence) => {
                let told = silence.told(&format!("the request to open a session with cipher suite {suite}"));
                Err(Stumble::Suite(Failure::Unknown(told)))
            }
        }
    }

    /// RAKP 1 and 2: what both have told each other, and whether it was said more than once.
    async fn prove_bmc(&mut self, suite: Suite, opened: &Opened) -> Result<(Told<'a>, bool), Stumble> {
        let login = self.login;
        let role = BY_NAME | login.privilege.number();
        let console_random: [u8; 16] = dice(self.random)?;
        let mut rakp1 = self.begin(0, opened.bmc_session);
        rakp1.extend(console_random);
        rakp1.extend([role, 0, 0, u8::try_from(login.username.len()).map_err(|_| too_long())?]);
        rakp1.extend(login.username.as_bytes());
        let judge = |bytes: &mut Reader<'_>| {
            let (bmc_random, guid) = (bytes.array()?, bytes.array()?);
            let (console_session, bmc_session) = (opened.console_session, opened.bmc_session);
            let told = Told { suite, login, role, console_session, bmc_session, console_random, bmc_random, guid };
            let proof = bytes.take(suite.whole_code())?;
            Some((told.proven_by(proof), told))
        };
        let heard = self.step(Kind::Rakp1, &rakp1, Kind::Rakp2, opened.console_session, self.limits, judge).await?;
        match heard {
            Heard::Answer(Ok((true, told)), more) => Ok((told, more > 0)),
            Heard::Answer(Ok((false, _)), _) => {
                // The BMC keeps a place for us until it hears this.
                let rakp3 = self.begin(WRONG_PROOF, opened.bmc_session);
                let _ = packet::outside(Kind::Rakp3, &rakp3).map(|packet| self.line.send(&packet));
                Err(Stumble::Over(Failure::Refused(format!(
                    "the BMC's answer does not prove that it knows the password of {:?}: wrong password, or not the BMC that \
                     you mean; put the Secret or `ip` right",
                    login.username
                ))))
            }
            Heard::Answer(Err(status), more) => {
                let why = codes::not_let_in(status, login, "RAKP 2");
                Err(if more > 0 { Stumble::Lost(why) } else { Stumble::Over(why) })
            }
            Heard::Silence(silence) => {
                Err(Stumble::Lost(Failure::Unknown(silence.told("the first step of the login"))))
            }
        }
    }

    /// What each step begins with.
    fn begin(&mut self, status: u8, bmc_session: u32) -> Vec<u8> {
        self.tag = self.tag.wrapping_add(1);
        let mut step = vec![self.tag, status, 0, 0];
        step.extend(bmc_session.to_le_bytes());
        step
    }

    /// One step. `judge` reads what comes behind the head, and says whether it is proven.
    async fn step<T: Send>(
        &self,
        kind: Kind,
        payload: &[u8],
        wanted: Kind,
        console_session: u32,
        limits: &Limits,
        mut judge: impl FnMut(&mut Reader<'_>) -> Option<(bool, T)> + Send,
    ) -> Result<Heard<Step<(bool, T)>>, Failure> {
        let tag = self.tag;
        let datagram = || packet::outside(kind, payload).ok_or_else(too_long);
        let judge = |datagram: &[u8]| {
            let mut answered = || {
                let mut bytes = Reader::new(packet::read_outside(datagram, wanted)?);
                let [echoed, status] = bytes.array()?;
                let session = bytes.array().and_then(|[_, _]: [u8; 2]| bytes.number());
                // Whoever refuses may leave the session out; OpenIPMI ends with the status.
                let ours = session == Some(console_session) || (status != 0 && matches!(session, None | Some(0)));
                match (echoed == tag && ours, status) {
                    (false, _) => None,
                    (true, 0) => judge(&mut bytes).map(Ok),
                    (true, status) => Some(Err(status)),
                }
            };
            match answered() {
                None => Judged::NotOurs,
                // A refusal is as easily forged as a proof that fails. One of a suite is believed at once: another suite is
                // no weaker a proof, and whoever waits at each BMC without the best one waits often.
                Some(answer @ (Ok((false, _)) | Err(_))) if wanted != Kind::OpenSessionReply => {
                    Judged::Doubtful(answer)
                }
                Some(answer) => Judged::Answer(answer),
            }
        };
        patience::ask(self.line, limits, None, datagram, judge).await
    }

    fn other_keys(&self, capabilities: Capabilities) -> Failure {
        let why = match (self.login.has_kg(), capabilities.has_kg) {
            (true, Some(false)) => {
                "it says that it has no key of its own (K_g); remove `hexadecimal_kg`, or set the key there"
            }
            (true, _) => "it does not have this key (K_g); put `hexadecimal_kg` right",
            (false, Some(true)) => "it has a key of its own (K_g); give it as `hexadecimal_kg`",
            (false, _) => {
                "it may have a key of its own (K_g), to be given as `hexadecimal_kg`, or is not the BMC that you mean"
            }
        };
        Failure::Refused(format!("the BMC knows the password, and does not come to the same keys as we do: {why}"))
    }
}

/// The three algorithms of a suite, as they are proposed and as they are taken.
fn proposal(suite: Suite) -> [u8; 24] {
    let [authentication, integrity, confidentiality] = suite.algorithms();
    let mut all = [0; 24];
    let parts = [[0, 0, 0, 8, authentication], [1, 0, 0, 8, integrity], [2, 0, 0, 8, confidentiality]];
    for (to, from) in all.chunks_exact_mut(8).zip(parts) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from);
    }
    all
}

fn too_long() -> Failure {
    Failure::Refused("a step of the login is too long for IPMI".to_owned())
}
