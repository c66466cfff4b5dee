//! A BMC: what switches a machine on and off over the network, honest or not.
//!
//! Promise: what was asked is in the log, with what became of it. A BMC that lies never tells the world so.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};

use super::{
    machine::{Link, Power, Switch},
    redfish,
};
use crate::{
    clock::Clock,
    truth::{Later, Name, Truth, What, World},
};

/// How a BMC behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// It does what it says, within a blink.
    #[default]
    Honest,
    /// Honest, but each answer takes this long.
    Slow(Duration),
    /// It takes the request, and neither acts nor answers.
    Silent,
    /// Nobody answers the connection.
    Unreachable,
    /// It answers every reset with this HTTP code, and does nothing. Reads are honest.
    Refuses(u16),
    /// It answers every reset with success, and does nothing. Reads are honest.
    AcceptsOnly,
    /// It answers every reset with success, does nothing, and says Off whatever is true.
    SaysOff,
    /// It carries a reset out after this time, and answers only then: long after most callers gave up.
    Late(Duration),
    /// It carries a reset out, and its answer to that never arrives, unless there was nothing to do. Reads are honest.
    LosesReply,
    /// It answers every reset with success, does nothing, and shows what should be so for this long: a cache. Then it is honest.
    ShowsFor(Duration),
    /// It switches off, and the machine comes back by itself after this time.
    Flaps(Duration),
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// It was carried out.
    Done,
    /// It will be, or was, carried out late.
    Late,
    /// It was accepted and not carried out.
    Ignored,
    /// It was refused.
    Refused,
    /// It vanished.
    Lost,
}

/// A command that reached a BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Command {
    /// What was asked.
    pub switch: Switch,
    /// What became of it.
    pub fate: Fate,
}

/// A BMC.
#[derive(Debug)]
pub struct Bmc {
    /// Where it is reached: the host of its address, as in `https://bmc-n1/`.
    pub host: String,
    /// Who may ask.
    pub user: String,
    /// And how they show it.
    pub password: String,
    /// How it behaves.
    pub behaviour: Behaviour,
    /// Whether it can tell a machine that hibernates from one that is off. Most cannot.
    pub tells_hibernated: bool,
    /// Every reset that reached it, with the time.
    pub log: Vec<(Duration, Command)>,
    /// When it last told anybody that the machine is off.
    pub said_off: Option<Duration>,
    pub(crate) sessions: redfish::Sessions,
}

impl Bmc {
    pub(crate) fn of(node: &str) -> Self {
        Self {
            host: format!("bmc-{node}"),
            user: "fence".to_owned(),
            password: format!("secret-{node}"),
            behaviour: Behaviour::Honest,
            tells_hibernated: false,
            log: Vec::new(),
            said_off: None,
            sessions: redfish::Sessions::default(),
        }
    }

    /// Whether it serves an off from its cache.
    fn shows_an_old_off(&self, now: Duration) -> bool {
        let told = self.log.last().filter(|(_, command)| command.switch == Switch::ForceOff);
        matches!((&self.behaviour, told), (Behaviour::ShowsFor(time), Some((at, _))) if now < *at + *time)
    }

    /// The power that it reports.
    pub(crate) fn reports(&self, power: Power, now: Duration) -> &'static str {
        match power {
            _ if self.behaviour == Behaviour::SaysOff || self.shows_an_old_off(now) => "Off",
            Power::PoweringOn => "PoweringOn",
            Power::On => "On",
            Power::PoweringOff => "PoweringOff",
            Power::Suspended => "Paused",
            Power::Hibernated if self.tells_hibernated => "Paused",
            Power::Hibernated | Power::Off => "Off",
        }
    }
}

impl World {
    /// A reset reaches a BMC.
    pub(crate) fn tell_bmc(&mut self, node: &Name, switch: Switch) -> Fate {
        let Some(bmc) = self.bmcs.get_mut(node) else { return Fate::Lost };
        let (fate, wait) = match bmc.behaviour {
            Behaviour::Honest | Behaviour::Slow(_) | Behaviour::LosesReply => (Fate::Done, Duration::ZERO),
            Behaviour::Flaps(wait) => (Fate::Done, wait),
            Behaviour::Late(wait) => (Fate::Late, wait),
            Behaviour::AcceptsOnly | Behaviour::SaysOff | Behaviour::ShowsFor(_) => (Fate::Ignored, Duration::ZERO),
            Behaviour::Refuses(_) => (Fate::Refused, Duration::ZERO),
            Behaviour::Silent | Behaviour::Unreachable => (Fate::Lost, Duration::ZERO),
        };
        let command = Command { switch, fate };
        bmc.log.push((self.now, command));
        self.happened(What::Told { node: Name::clone(node), command });
        match fate {
            Fate::Done => {
                self.switch(node, switch);
                if wait > Duration::ZERO && switch == Switch::ForceOff {
                    let command = Command { switch: Switch::On, fate };
                    self.plan(wait, Later::Command { node: Name::clone(node), command });
                }
            }
            Fate::Late => self.plan(wait, Later::Command { node: Name::clone(node), command }),
            Fate::Ignored | Fate::Refused | Fate::Lost => {}
        }
        fate
    }

    pub(crate) fn carry_out(&mut self, node: &str, command: Command) {
        self.switch(node, command.switch);
    }
}

/// The network that the BMCs are on: carries an HTTP request to the BMC that it names.
#[derive(Clone, Debug)]
pub struct BmcNetwork {
    truth: Truth,
    clock: Clock,
    /// The machine from which it is used; nothing means from somewhere safe.
    from: Option<Name>,
}

/// No answer came, and none will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoute {
    /// Who was asked.
    pub host: String,
}

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no route to {}", self.host)
    }
}

impl std::error::Error for NoRoute {}

/// How long it takes to learn that a host is not there (three ARP requests).
const NO_ROUTE: Duration = Duration::from_secs(3);

impl BmcNetwork {
    pub(crate) fn new(truth: Truth, clock: Clock) -> Self {
        Self { truth, clock, from: None }
    }

    /// The same network for somebody on a machine, with whose link to it they get through or not.
    #[must_use]
    pub fn seen_from(self, node: &str) -> Self {
        Self { from: Some(Name::from(node)), ..self }
    }

    /// Asks a BMC. What was sent is on its way, whatever becomes of its sender.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, NoRoute> {
        let host = host_of(&request);
        let network = self.clone();
        let answer = tokio::spawn(async move { network.carry(request).await });
        answer.await.unwrap_or(Err(NoRoute { host }))
    }

    async fn carry(&self, request: Request<Bytes>) -> Result<Response<Bytes>, NoRoute> {
        let host = host_of(&request);
        let Some((node, behaviour)) = self.find(&host) else { return self.no_route(host).await };
        let blink = self.truth.act(|world| world.dice.millis(10, 30));
        match behaviour {
            Behaviour::Unreachable => return self.no_route(host).await,
            Behaviour::Slow(wait) => self.clock.sleep(wait).await,
            _ => self.clock.sleep(blink).await,
        }
        let was_off = self.truth.look(|world| world.machines.get(&node).is_some_and(|one| one.power == Power::Off));
        let answer = self.truth.act(|world| redfish::embedded(world, &node, &request));
        match behaviour {
            // The command is logged as lost; the caller waits for ever.
            Behaviour::Silent => std::future::pending().await,
            Behaviour::LosesReply if redfish::is_reset(&request) && !was_off => std::future::pending().await,
            Behaviour::Late(wait) => self.clock.sleep(wait).await,
            _ => self.clock.sleep(blink).await,
        }
        Ok(answer)
    }

    fn find(&self, host: &str) -> Option<(Name, Behaviour)> {
        self.truth.look(|world| {
            let here = self.from.as_ref().and_then(|from| world.machines.get(from));
            let cut = here.is_some_and(|machine| !machine.reaches(Link::Devices));
            let (node, bmc) = world.bmcs.iter().find(|(_, bmc)| bmc.host == host)?;
            let fed = world.machines.get(node).is_some_and(|machine| machine.fed);
            let behaviour = if fed && !cut { bmc.behaviour.clone() } else { Behaviour::Unreachable };
            Some((Name::clone(node), behaviour))
        })
    }

    async fn no_route(&self, host: String) -> Result<Response<Bytes>, NoRoute> {
        self.clock.sleep(NO_ROUTE).await;
        Err(NoRoute { host })
    }
}

fn host_of(request: &Request<Bytes>) -> String {
    let named = request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().host().or(named).unwrap_or_default();
    host.split(':').next().unwrap_or_default().to_owned()
}

impl tower::Service<Request<Bytes>> for BmcNetwork {
    type Response = Response<Bytes>;
    type Error = NoRoute;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, NoRoute>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoRoute>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let network = self.clone();
        Box::pin(async move { BmcNetwork::call(&network, request).await })
    }
}
