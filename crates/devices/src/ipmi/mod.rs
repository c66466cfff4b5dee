//! IPMI: a BMC over IPMI 2.0 (RMCP+), for those that have no Redfish.
//!
//! Promise (I6): `Ok` of a command is the BMC's own word that it took it (completion code 0), in a session in which both sides
//! have proven that they know the password, and in which nothing can be read, changed or repeated on the way. A lost answer
//! is unknown, never a success and never a refusal. Bytes that are not proven to be the BMC's answer are none.
//! Never: power cycle or reset; cipher suite 0, or a session of IPMI 1.5; a repeated command after the permit has ended.
//!
//! What no driver can mend: a BMC gives anyone who knows a user's name a code (RAKP 2) by which passwords can be guessed
//! without asking it again. Such passwords are long and random, and BMCs have a network of their own.
//!
//! | file | is |
//! |---|---|
//! | `login` | who we are, and what we insist on |
//! | `wire` | datagrams there and back |
//! | `packet`, `message` | how they are written and read |
//! | `patience` | how long, how often |
//! | `capabilities`, `handshake`, `keys` | the way to a session |
//! | `session`, `window`, `seal` | what is said in it |
//! | `chassis`, `identity` | power, and whose machine it is |
//! | `inventory`, `fru` | its serial number |
//! | `codes` | what a BMC says by a number |

mod capabilities;
mod chassis;
mod codes;
mod fru;
pub(crate) mod fuzz;
mod handshake;
mod identity;
mod inventory;
mod keys;
mod login;
mod message;
mod packet;
mod patience;
mod seal;
mod session;
mod window;
mod wire;

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use ring::rand::SystemRandom;
use tokio::time::timeout;

use self::handshake::Handshake;
pub use self::identity::GuidOrder;
pub use self::login::{BadLogin, Ciphers, Login, Privilege, Suite};
pub use self::patience::Limits;
use self::session::Session;
pub use self::wire::{Carried, Line, Network, PORT, Udp};
use crate::{Answer, Command, Device, Failure, Identity, Permit, PowerState};

/// One BMC. Each call opens a session of its own and closes it.
pub struct Ipmi {
    network: Arc<dyn Network>,
    login: Login,
    limits: Limits,
    guid_order: GuidOrder,
    /// Whether the serial number is read with the identity.
    serial: bool,
    random: SystemRandom,
    /// The suite that was agreed on last: it is asked for first.
    suite: Mutex<Option<Suite>>,
}

impl Ipmi {
    /// The BMC at the other end of `network`.
    pub fn new(network: Arc<dyn Network>, login: Login) -> Self {
        let (limits, guid_order, random) = (Limits::default(), GuidOrder::default(), SystemRandom::new());
        Self { network, login, limits, guid_order, serial: false, random, suite: Mutex::default() }
    }

    /// With other limits.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// At a BMC that is known to send its system's GUID in this order.
    #[must_use]
    pub fn with_guid_order(self, guid_order: GuidOrder) -> Self {
        Self { guid_order, ..self }
    }

    /// For somebody who compares the serial number: it takes a dozen questions more, so nobody else has it read.
    #[must_use]
    pub fn with_serial(self) -> Self {
        Self { serial: true, ..self }
    }

    /// The suites that may be used, the one that worked last in front.
    fn suites(&self) -> Vec<Suite> {
        let known = *self.suite.lock().unwrap_or_else(PoisonError::into_inner);
        let mut suites = self.login.ciphers.suites().to_vec();
        suites.sort_by_key(|suite| Some(*suite) != known);
        suites
    }

    async fn session(&self) -> Result<Session, Failure> {
        let line = self.network.open().await.map_err(|why| Failure::Unknown(why.to_string()))?;
        let Self { login, limits, random, .. } = self;
        let mut handshake = Handshake { line: &*line, login, limits, random, tag: 0 };
        let (suite, agreed) = handshake.agree(&self.suites()).await?;
        *self.suite.lock().unwrap_or_else(PoisonError::into_inner) = Some(suite);
        let mut session = Session::new(line, agreed, *limits, random.clone());
        session.raise(login.privilege).await?;
        Ok(session)
    }

    /// Does `work` in a session, all of it in the time that a call has.
    async fn call<T, W>(&self, plug: &str, work: impl FnOnce(Session) -> W + Send) -> Result<T, Failure>
    where
        T: Send,
        W: Future<Output = (Session, Result<T, Failure>)> + Send,
    {
        if !plug.is_empty() {
            return Err(Failure::Refused(format!(
                "a BMC is in one machine, and `plug` names {plug:?}; remove it, or use the driver of a device that has plugs"
            )));
        }
        let done = timeout(self.limits.whole, async {
            let session = self.session().await?;
            Ok(work(session).await)
        });
        let late = || Failure::Unknown(format!("no end within {:?}", self.limits.whole));
        let done = match done.await.unwrap_or_else(|_| Err(late())) {
            Ok((session, done)) => {
                // What the BMC has said is not lost if it is slow to say goodbye.
                session.close().await;
                done
            }
            Err(why) => Err(why),
        };
        done.map_err(|why| self.named(why))
    }

    /// Says which BMC it was.
    fn named(&self, why: Failure) -> Failure {
        let name = self.network.name();
        match why {
            Failure::Refused(why) => Failure::Refused(format!("{name}: {why}")),
            Failure::Unknown(why) => Failure::Unknown(format!("{name}: {why}")),
        }
    }
}

impl Device for Ipmi {
    fn command<'a>(&'a self, plug: &'a str, command: Command, permit: &'a dyn Permit) -> Answer<'a, ()> {
        Box::pin(self.call(plug, move |mut session| async move {
            let done = chassis::control(&mut session, command, permit).await;
            (session, done)
        }))
    }

    fn state<'a>(&'a self, plug: &'a str) -> Answer<'a, PowerState> {
        Box::pin(self.call(plug, |mut session| async {
            let done = chassis::state(&mut session).await;
            (session, done)
        }))
    }

    fn identity<'a>(&'a self, plug: &'a str) -> Answer<'a, Identity> {
        Box::pin(self.call(plug, |mut session| async {
            let done = identity::read(&mut session, self.guid_order, self.serial).await;
            (session, done)
        }))
    }
}
