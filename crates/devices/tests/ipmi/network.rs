//! A network without a network: every datagram passes a test's hands on its way.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use palisade_devices::ipmi::{Carried, Line, Network};
use tokio::sync::Notify;

use crate::bmc::Bmc;

/// Where a datagram goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    ToBmc,
    FromBmc,
}

/// A datagram on its way: `nth` of its kind in this direction, from 1 on. Kinds are the payload types of RMCP+; what is said
/// before a session has none.
pub(crate) struct Passing<'a> {
    pub(crate) way: Way,
    pub(crate) kind: u8,
    pub(crate) nth: usize,
    pub(crate) bytes: &'a [u8],
}

/// The payload type of everything that is said in a session.
pub(crate) const IN_SESSION: u8 = 0xc0;
/// Of what is asked before one.
pub(crate) const BEFORE: u8 = 0xfe;
pub(crate) const OPEN: u8 = 0x10;
pub(crate) const OPENED: u8 = 0x11;
pub(crate) const RAKP_1: u8 = 0x12;
pub(crate) const RAKP_2: u8 = 0x13;
pub(crate) const RAKP_3: u8 = 0x14;
pub(crate) const RAKP_4: u8 = 0x15;

type Hands = dyn FnMut(&Passing<'_>) -> Vec<Vec<u8>> + Send;

/// The network, and the BMC at its end.
#[derive(Clone)]
pub(crate) struct Lossy {
    pub(crate) bmc: Arc<Mutex<Bmc>>,
    hands: Arc<Mutex<Box<Hands>>>,
    passed: Arc<Mutex<Vec<(Way, u8)>>>,
}

impl Lossy {
    /// What `hands` returns for a datagram goes on in its place.
    pub(crate) fn new(bmc: Bmc, hands: impl FnMut(&Passing<'_>) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let hands: Box<Hands> = Box::new(hands);
        Self { bmc: Arc::new(Mutex::new(bmc)), hands: Arc::new(Mutex::new(hands)), passed: Arc::default() }
    }

    /// All of them arrive.
    pub(crate) fn good(bmc: Bmc) -> Self {
        Self::new(bmc, |passing| vec![passing.bytes.to_vec()])
    }

    /// How many datagrams of a kind were sent that way.
    pub(crate) fn passed(&self, way: Way, kind: u8) -> usize {
        self.passed.lock().unwrap().iter().filter(|seen| **seen == (way, kind)).count()
    }

    fn pass(&self, way: Way, bytes: &[u8]) -> Vec<Vec<u8>> {
        let kind = if bytes.get(4) == Some(&0) { BEFORE } else { bytes[5] };
        self.passed.lock().unwrap().push((way, kind));
        let nth = self.passed(way, kind);
        (self.hands.lock().unwrap())(&Passing { way, kind, nth, bytes })
    }
}

impl Network for Lossy {
    fn open(&self) -> Carried<'_, Box<dyn Line>> {
        let end = End { network: self.clone(), waiting: Mutex::default(), arrived: Notify::new() };
        Box::pin(async { Ok(Box::new(end) as Box<dyn Line>) })
    }

    fn name(&self) -> String {
        "bmc-1:623".to_owned()
    }
}

struct End {
    network: Lossy,
    waiting: Mutex<VecDeque<Vec<u8>>>,
    arrived: Notify,
}

impl Line for End {
    fn ready(&self) -> Carried<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        for arriving in self.network.pass(Way::ToBmc, datagram) {
            let answer = self.network.bmc.lock().unwrap().hear(&arriving);
            let back = answer.map(|answer| self.network.pass(Way::FromBmc, &answer));
            self.waiting.lock().unwrap().extend(back.into_iter().flatten());
        }
        self.arrived.notify_one();
        Ok(())
    }

    fn receive(&self) -> Carried<'_, Vec<u8>> {
        Box::pin(async {
            loop {
                if let Some(datagram) = self.waiting.lock().unwrap().pop_front() {
                    return Ok(datagram);
                }
                self.arrived.notified().await;
            }
        })
    }
}
