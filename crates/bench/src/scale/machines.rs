//! Scale / machines: kubelets and BMCs of all nodes behind one port of loopback. One question and one answer a connection.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::population;
use crate::clock::now;

/// From power to a kubelet that reports.
const BOOT: Duration = Duration::from_secs(3);

/// What a BMC was asked, and when it had answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Read,
    Off,
    On,
}

/// All machines; those that are not mentioned run.
#[derive(Clone, Default)]
pub(crate) struct Machines(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    off: BTreeMap<u32, Power>,
    asked: Vec<(u32, Asked, Instant)>,
}

#[derive(Clone, Copy)]
enum Power {
    Off,
    /// Switched on then.
    On(Instant),
}

impl Machines {
    /// Takes a machine's power away.
    pub(crate) fn kill(&self, number: u32) {
        self.lock().off.insert(number, Power::Off);
    }

    /// Whether a machine's kubelet runs.
    pub(crate) fn lives(&self, number: u32) -> bool {
        match self.lock().off.get(&number) {
            None => true,
            Some(Power::Off) => false,
            Some(Power::On(since)) => since.elapsed() >= BOOT,
        }
    }

    /// Whether a machine has been off.
    pub(crate) fn was_off(&self, number: u32) -> bool {
        self.lock().off.contains_key(&number)
    }

    /// What a machine's BMC was asked.
    pub(crate) fn asked(&self, number: u32) -> Vec<(Asked, Instant)> {
        self.lock().asked.iter().filter(|(one, ..)| *one == number).map(|(_, what, at)| (*what, *at)).collect()
    }

    /// Takes a port, and answers there for ever.
    pub(crate) async fn listen(
        &self,
    ) -> io::Result<(SocketAddr, impl Future<Output = io::Result<Infallible>> + use<>)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok((address, self.clone().serve(listener)))
    }

    async fn serve(self, listener: TcpListener) -> io::Result<Infallible> {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            let machines = self.clone();
            // A connection that breaks is the asker's affair.
            connections.spawn(async move { drop(machines.converse(stream).await) });
            while connections.try_join_next().is_some() {}
        }
    }

    async fn converse(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let answer = self.answer(&serde_json::from_str(&line)?);
        stream.get_mut().write_all(answer.to_string().as_bytes()).await
    }

    fn answer(&self, question: &Value) -> Value {
        if let Some(node) = question["kubelet"].as_str() {
            return json!({"alive": number(node).is_some_and(|number| self.lives(number))});
        }
        match question["bmc"].as_str().and_then(|host| host.strip_prefix("bmc-")).and_then(number) {
            Some(number) => self.redfish(number, question),
            None => json!({"status": 404, "body": {}}),
        }
    }

    fn redfish(&self, number: u32, question: &Value) -> Value {
        let path = question["path"].as_str().unwrap_or_default();
        let system = format!("/redfish/v1/Systems/n{number}");
        if question["method"] == "POST" {
            let reset: Value =
                question["body"].as_str().and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
            let on = reset["ResetType"] == "On";
            let mut world = self.lock();
            world.off.insert(number, if on { Power::On(now()) } else { Power::Off });
            world.asked.push((number, if on { Asked::On } else { Asked::Off }, now()));
            return json!({"status": 204, "body": {}});
        }
        if path == "/redfish/v1/Systems" {
            return json!({"status": 200, "body": {"Members": [{"@odata.id": system}]}});
        }
        let mut world = self.lock();
        world.asked.push((number, Asked::Read, now()));
        let power = if matches!(world.off.get(&number), Some(Power::Off)) { "Off" } else { "On" };
        json!({"status": 200, "body": {
            "PowerState": power, "UUID": population::uuid(number),
            "Actions": {"#ComputerSystem.Reset": {"target": format!("{system}/Actions/ComputerSystem.Reset")}},
        }})
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(node: &str) -> Option<u32> {
    node.strip_prefix('n')?.parse().ok()
}
