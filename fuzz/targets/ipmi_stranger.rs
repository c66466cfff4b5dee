//! A whole login against somebody who answers anything and does not know the password: nothing that they say is ever believed.
#![no_main]

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use palisade_devices::Device;
use palisade_devices::ipmi::{Carried, Ipmi, Limits, Line, Login, Network};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime"));

/// Answers with what is left of the bytes.
#[derive(Clone)]
struct Stranger(Arc<Mutex<VecDeque<u8>>>);

impl Network for Stranger {
    fn open(&self) -> Carried<'_, Box<dyn Line>> {
        let line = Whispers {
            stranger: self.clone(),
            console: Mutex::default(),
            waiting: Mutex::default(),
            arrived: Notify::new(),
        };
        Box::pin(async { Ok(Box::new(line) as Box<dyn Line>) })
    }

    fn name(&self) -> String {
        "stranger".to_owned()
    }
}

struct Whispers {
    stranger: Stranger,
    /// Our name of the session, which the stranger has heard.
    console: Mutex<[u8; 4]>,
    waiting: Mutex<VecDeque<Vec<u8>>>,
    arrived: Notify,
}

impl Whispers {
    /// The next answer: nothing, bytes as they are, or bytes behind a head that fits to what was asked.
    fn answer(&self, asked: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = self.stranger.0.lock().expect("nobody panics");
        let (manner, length) = (bytes.pop_front()?, usize::from(bytes.pop_front()?));
        let length = length.min(bytes.len());
        let said: Vec<u8> = bytes.drain(..length).collect();
        let (kind, payload) = (*asked.get(5)?, asked.get(16..)?);
        if kind == 0x10 {
            self.console.lock().expect("nobody panics").copy_from_slice(payload.get(4..8)?);
        }
        let console = *self.console.lock().expect("nobody panics");
        match manner % 4 {
            0 => None,
            1 => Some(said),
            status => {
                let status = if status == 2 { 0 } else { manner >> 2 };
                let head = [*payload.first()?, status, 0, 0];
                let payload = [&head[..], &console, &said].concat();
                let length = u16::try_from(payload.len()).ok()?.to_le_bytes();
                let packet = [&[6, 0, 0xff, 7, 6, kind.wrapping_add(1)][..], &[0; 8], &length, &payload];
                Some(packet.concat())
            }
        }
    }
}

impl Line for Whispers {
    fn ready(&self) -> Carried<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        if let Some(answer) = self.answer(datagram) {
            self.waiting.lock().expect("nobody panics").push_back(answer);
            self.arrived.notify_one();
        }
        Ok(())
    }

    fn receive(&self) -> Carried<'_, Vec<u8>> {
        Box::pin(async {
            loop {
                if let Some(datagram) = self.waiting.lock().expect("nobody panics").pop_front() {
                    return Ok(datagram);
                }
                self.arrived.notified().await;
            }
        })
    }
}

fuzz_target!(|bytes: &[u8]| {
    let stranger = Stranger(Arc::new(Mutex::new(bytes.iter().copied().collect())));
    let limits = Limits { first_wait: Duration::from_secs(1), tries: 2, whole: Duration::from_secs(20) };
    let login = Login::new("fence", "s3cret").expect("a login");
    let device = Ipmi::new(Arc::new(stranger), login).within(limits);
    let said = RUNTIME.block_on(device.state(""));
    assert!(said.is_err(), "a stranger was believed: {said:?}");
});
