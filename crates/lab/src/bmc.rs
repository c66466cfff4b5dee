//! BMC: a Redfish service over HTTPS per machine, whose power button starts and kills it; honest or not.
//!
//! How it behaves is a file, and what it was told is another, so that whoever plays with a lab can set the one and read the
//! other while the service runs in a process of its own.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use palisade_cluster::machines::bmc::{Behaviour, Fate};
use palisade_cluster::machines::machine::Switch;
use palisade_cluster::machines::redfish::{self, Panel, Sessions};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use crate::machine::Machine;
use crate::papers::Papers;
use crate::run::Run;
use crate::tool::line;

/// Who may ask every BMC of a lab.
pub const USER: &str = "fence";
/// The longest request that it reads.
const LONGEST: usize = 64 * 1024;

/// A machine's BMC.
#[derive(Clone, Debug)]
pub struct Bmc {
    run: Run,
    machine: Machine,
}

impl Bmc {
    /// The BMC of a machine.
    pub fn of(run: Run, machine: &Machine) -> Self {
        Self { run, machine: machine.clone() }
    }

    /// The password of its user.
    pub fn password(&self) -> String {
        format!("secret-{}", self.machine.name())
    }

    /// From now on it behaves like this.
    pub fn set(&self, behaviour: &Behaviour) -> Result<()> {
        let away = *behaviour == Behaviour::Unreachable;
        let address = format!("{}/24 dev {}", self.run.bmc_address(self.machine.index()), self.run.bridge());
        let here = line(&format!("ip -o addr show to {}", self.run.bmc_address(self.machine.index())))?;
        // A BMC without power has no address: nobody answers, not even a refusal.
        match (away, here.trim().is_empty()) {
            (true, false) => drop(line(&format!("ip addr del {address}"))?),
            (false, true) => drop(line(&format!("ip addr add {address}"))?),
            (true, true) | (false, false) => {}
        }
        fs::write(self.behaviour_file(), word(behaviour)).context("cannot write how the BMC behaves")
    }

    /// Every command that reached it, in order.
    pub fn log(&self) -> Vec<Switch> {
        let text = fs::read_to_string(self.log_file()).unwrap_or_default();
        let known = [Switch::On, Switch::ForceOff, Switch::GracefulOff, Switch::Restart];
        text.lines().filter_map(|line| known.into_iter().find(|switch| format!("{switch:?}") == line)).collect()
    }

    /// What the chassis of its IPMI side says or does: `get power`, or `set power 0` and the like. It behaves as the Redfish side does.
    pub fn chassis(&self, words: &[String]) -> Result<String> {
        let behaviour = self.behaviour();
        if let Behaviour::Slow(wait) | Behaviour::Late(wait) = behaviour {
            std::thread::sleep(wait);
        }
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["get", asked @ ..] => {
                let on = self.machine.is_on() && !self.says_off(&behaviour);
                let told = |name: &&str| match *name {
                    "power" => format!("power:{}\n", u8::from(on)),
                    other => format!("{other}:default\n"),
                };
                Ok(asked.iter().map(told).collect())
            }
            ["set", "power", wanted] => {
                let switch = if *wanted == "0" { Switch::ForceOff } else { Switch::On };
                self.note(switch);
                match behaviour {
                    Behaviour::AcceptsOnly | Behaviour::SaysOff | Behaviour::ShowsFor(_) => {}
                    Behaviour::Refuses(_) => bail!("refused"),
                    _ => self.press(switch)?,
                }
                Ok(String::new())
            }
            ["check"] => bail!("nothing is held"),
            other => bail!("no chassis can do {other:?}"),
        }
    }

    /// Forgets what it was told.
    pub fn forget(&self) {
        // There may be nothing to forget.
        let _nothing = fs::remove_file(self.log_file());
    }

    fn behaviour(&self) -> Behaviour {
        understood(&fs::read_to_string(self.behaviour_file()).unwrap_or_default())
    }

    /// Whether it says off whatever is so, or still shows what it was told last.
    fn says_off(&self, behaviour: &Behaviour) -> bool {
        let told_for = || fs::metadata(self.log_file()).ok()?.modified().ok()?.elapsed().ok();
        match behaviour {
            Behaviour::SaysOff => true,
            Behaviour::ShowsFor(time) => {
                self.log().last() == Some(&Switch::ForceOff) && told_for().is_some_and(|since| since < *time)
            }
            _ => false,
        }
    }

    fn behaviour_file(&self) -> PathBuf {
        self.machine.dir().join("bmc-behaviour")
    }

    fn log_file(&self) -> PathBuf {
        self.machine.dir().join("bmc-log")
    }

    fn note(&self, switch: Switch) {
        let file = File::options().create(true).append(true).open(self.log_file());
        if let Err(why) = file.and_then(|mut file| writeln!(file, "{switch:?}")) {
            eprintln!("the BMC of {} cannot write its log: {why}", self.machine.name());
        }
    }

    fn press(&self, switch: Switch) -> Result<()> {
        match switch {
            Switch::On => self.machine.on(),
            Switch::ForceOff | Switch::GracefulOff => self.machine.off(),
            Switch::Restart => self.machine.off().and_then(|()| self.machine.on()),
        }
    }

    async fn answer(&self, sessions: &Mutex<Sessions>, request: Request<Bytes>) -> Response<Bytes> {
        let behaviour = self.behaviour();
        if let Behaviour::Slow(wait) = behaviour {
            tokio::time::sleep(wait).await;
        }
        let was_on = self.machine.is_on();
        let (answer, late) = {
            let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let mut front = Front { bmc: self, behaviour: &behaviour, sessions: &mut sessions, late: None };
            (redfish::answer(&mut front, &request), front.late)
        };
        match (behaviour, late) {
            (Behaviour::Silent, _) => std::future::pending().await,
            (Behaviour::LosesReply, _) if redfish::is_reset(&request) && was_on => std::future::pending().await,
            (Behaviour::Flaps(wait), _) if redfish::is_reset(&request) && !self.machine.is_on() => {
                tokio::time::sleep(wait).await;
                self.tell(Switch::On);
            }
            (Behaviour::Late(wait), Some(switch)) => {
                tokio::time::sleep(wait).await;
                self.tell(switch);
            }
            (Behaviour::Late(wait), None) => tokio::time::sleep(wait).await,
            _ => {}
        }
        answer
    }

    fn tell(&self, switch: Switch) {
        if let Err(why) = self.press(switch) {
            eprintln!("{}: {switch:?} failed: {why:#}", self.machine.name());
        }
    }
}

/// The front panel of a real machine, for one request.
struct Front<'a> {
    bmc: &'a Bmc,
    behaviour: &'a Behaviour,
    sessions: &'a mut Sessions,
    /// To be done when the answer is due.
    late: Option<Switch>,
}

impl Panel for Front<'_> {
    fn name(&self) -> &str {
        self.bmc.machine.name()
    }

    fn login(&self) -> (String, String) {
        (USER.to_owned(), self.bmc.password())
    }

    fn sessions(&mut self) -> &mut Sessions {
        self.sessions
    }

    fn power(&mut self) -> &'static str {
        if self.bmc.says_off(self.behaviour) || !self.bmc.machine.is_on() { "Off" } else { "On" }
    }

    fn identity(&self) -> (String, String) {
        (self.bmc.machine.uuid().unwrap_or_default(), format!("LAB{:04}", self.bmc.machine.index()))
    }

    fn reset(&mut self, switch: Switch) -> (Fate, StatusCode) {
        self.bmc.note(switch);
        let fate = match self.behaviour {
            Behaviour::Honest | Behaviour::Slow(_) | Behaviour::LosesReply | Behaviour::Flaps(_) => {
                self.bmc.tell(switch);
                Fate::Done
            }
            Behaviour::Late(_) => {
                self.late = Some(switch);
                Fate::Late
            }
            Behaviour::AcceptsOnly | Behaviour::SaysOff | Behaviour::ShowsFor(_) => Fate::Ignored,
            Behaviour::Refuses(_) => Fate::Refused,
            Behaviour::Silent | Behaviour::Unreachable => Fate::Lost,
        };
        (fate, StatusCode::SERVICE_UNAVAILABLE)
    }
}

/// Serves the BMCs of these machines, for ever.
pub async fn serve(run: Run, machines: &[Machine]) -> Result<()> {
    let mut services = tokio::task::JoinSet::new();
    for machine in machines {
        let bmc = Bmc::of(run, machine);
        let listener = TcpListener::bind((run.bmc_address(machine.index()), 443)).await;
        let listener = listener.with_context(|| format!("the BMC of {} cannot listen", machine.name()))?;
        services.spawn(listen(bmc, listener, acceptor(run, machine)?));
    }
    match services.join_next().await {
        Some(Ok(ended)) => ended,
        Some(Err(why)) => Err(anyhow!("a BMC ended: {why}")),
        None => Ok(()),
    }
}

async fn listen(bmc: Bmc, listener: TcpListener, acceptor: TlsAcceptor) -> Result<()> {
    let sessions: Arc<Mutex<Sessions>> = Arc::default();
    loop {
        let (stream, _) = listener.accept().await?;
        let (bmc, acceptor, sessions) = (bmc.clone(), acceptor.clone(), Arc::clone(&sessions));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request: Request<Incoming>| {
                let (bmc, sessions) = (bmc.clone(), Arc::clone(&sessions));
                async move {
                    let (parts, body) = request.into_parts();
                    let body = Limited::new(body, LONGEST).collect().await.map_err(|why| anyhow!("{why}"))?.to_bytes();
                    // What was sent is on its way, whatever becomes of the connection.
                    let answer =
                        tokio::spawn(async move { bmc.answer(&sessions, Request::from_parts(parts, body)).await });
                    anyhow::Ok(answer.await?.map(Full::new))
                }
            });
            // A client that hangs up is no concern of the BMC.
            let _hung_up =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn acceptor(run: Run, machine: &Machine) -> Result<TlsAcceptor> {
    let (certificate, key) = Papers::of(run).pair(&format!("bmc-{}", machine.name()));
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn word(behaviour: &Behaviour) -> String {
    match behaviour {
        Behaviour::Honest => "honest".to_owned(),
        Behaviour::Slow(wait) => format!("slow {}", wait.as_secs()),
        Behaviour::Silent => "silent".to_owned(),
        Behaviour::Unreachable => "unreachable".to_owned(),
        Behaviour::Refuses(code) => format!("refuses {code}"),
        Behaviour::AcceptsOnly => "accepts-only".to_owned(),
        Behaviour::SaysOff => "says-off".to_owned(),
        Behaviour::Late(wait) => format!("late {}", wait.as_secs()),
        Behaviour::LosesReply => "loses-reply".to_owned(),
        Behaviour::ShowsFor(time) => format!("shows-for {}", time.as_millis()),
        Behaviour::Flaps(time) => format!("flaps {}", time.as_millis()),
    }
}

fn understood(text: &str) -> Behaviour {
    let (name, number) = text.trim().split_once(' ').unwrap_or((text.trim(), "0"));
    let number_of = |number: &str| number.parse().unwrap_or(0);
    let (seconds, millis) = (Duration::from_secs(number_of(number)), Duration::from_millis(number_of(number)));
    match name {
        "slow" => Behaviour::Slow(seconds),
        "silent" => Behaviour::Silent,
        "unreachable" => Behaviour::Unreachable,
        "refuses" => Behaviour::Refuses(number.parse().unwrap_or(503)),
        "accepts-only" => Behaviour::AcceptsOnly,
        "says-off" => Behaviour::SaysOff,
        "late" => Behaviour::Late(seconds),
        "loses-reply" => Behaviour::LosesReply,
        "shows-for" => Behaviour::ShowsFor(millis),
        "flaps" => Behaviour::Flaps(millis),
        _ => Behaviour::Honest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_behaviour_is_read_as_it_was_written() {
        let all = [
            Behaviour::Honest,
            Behaviour::Slow(Duration::from_secs(4)),
            Behaviour::Silent,
            Behaviour::Unreachable,
            Behaviour::Refuses(503),
            Behaviour::AcceptsOnly,
            Behaviour::SaysOff,
            Behaviour::Late(Duration::from_secs(75)),
            Behaviour::LosesReply,
            Behaviour::ShowsFor(Duration::from_millis(1_500)),
            Behaviour::Flaps(Duration::from_millis(800)),
        ];
        for behaviour in all {
            assert_eq!(understood(&word(&behaviour)), behaviour);
        }
    }
}
