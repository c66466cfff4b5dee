//! A BMC for tests: the other side of RMCP+, written apart from the driver and with none of its code.
//!
//! It keeps a record of what reached it: whether a machine was switched is looked up there, never in an answer.

use std::collections::BTreeMap;

use aes::Aes128;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// What a test can set, and look up.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fault of its own, and a test sets the one that it is about"
)]
pub(crate) struct Bmc {
    pub(crate) suites: Vec<u8>,
    /// Suites that it does not even refuse.
    pub(crate) deaf_to: Vec<u8>,
    /// Answers every suite with this one.
    pub(crate) insists_on: Option<u8>,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) kg: Vec<u8>,
    /// The highest privilege of the user.
    pub(crate) privilege: u8,
    /// Whether too much privilege is refused by the login already.
    pub(crate) strict_login: bool,
    pub(crate) ipmi_2: bool,
    pub(crate) full: bool,
    pub(crate) guid: [u8; 16],
    pub(crate) power: bool,
    /// Completion codes of the next chassis controls; nothing is done for those that are not 0.
    pub(crate) codes: Vec<u8>,
    pub(crate) short_status: bool,
    pub(crate) no_guid: bool,
    /// The inventory, and how much of it is given at once.
    pub(crate) fru: Vec<u8>,
    pub(crate) fru_piece: u8,
    /// Counts the inventory in words of two bytes.
    pub(crate) fru_words: bool,
    /// Does not answer to reads of the inventory.
    pub(crate) fru_mute: bool,
    /// What was done, in order: `on`, `off`, `status`, `guid`, `close`.
    pub(crate) record: Vec<&'static str>,
    pub(crate) sessions: BTreeMap<u32, Open>,
    pub(crate) next: u32,
}

pub(crate) struct Open {
    suite: u8,
    console: u32,
    console_random: Vec<u8>,
    random: Vec<u8>,
    user: Vec<u8>,
    role: u8,
    sik: Vec<u8>,
    ready: bool,
    level: u8,
    heard: Vec<u32>,
    sequence: u32,
}

impl Default for Bmc {
    fn default() -> Self {
        Self {
            suites: vec![3, 17],
            deaf_to: vec![],
            insists_on: None,
            user: "fence".to_owned(),
            password: "s3cret".to_owned(),
            kg: vec![],
            privilege: 4,
            strict_login: true,
            ipmi_2: true,
            full: false,
            guid: *b"\x4c\x1d\x7e\x02\x93\xaa\x4f\xcb\xb1\xc0\x0c\xc4\x7a\x12\x34\x56",
            power: true,
            codes: vec![],
            short_status: false,
            no_guid: false,
            fru: vec![],
            fru_piece: 255,
            fru_words: false,
            fru_mute: false,
            record: vec![],
            sessions: BTreeMap::new(),
            next: 0x0200_0000,
        }
    }
}

fn algorithms(suite: u8) -> [u8; 3] {
    match suite {
        0 => [0, 0, 0],
        3 => [1, 1, 1],
        17 => [3, 4, 1],
        _ => unreachable!(),
    }
}

fn sign(suite: u8, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let hash = if suite == 17 { hmac::HMAC_SHA256 } else { hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY };
    // A key is always 20 bytes for a BMC.
    let mut key = key.to_vec();
    key.resize(key.len().max(20), 0);
    hmac::sign(&hmac::Key::new(hash, &key), &parts.concat()).as_ref().to_vec()
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

fn sum(bytes: &[u8]) -> u8 {
    0_u8.wrapping_sub(bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte)))
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).unwrap();
    bytes
}

fn outside(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_le_bytes();
    [&[6, 0, 0xff, 7, 6, kind][..], &[0; 8], &length, payload].concat()
}

/// The code of a packet is so long.
fn short(suite: u8) -> usize {
    if suite == 17 { 16 } else { 12 }
}

impl Bmc {
    pub(crate) fn open_sessions(&self) -> usize {
        self.sessions.values().filter(|session| session.ready).count()
    }

    /// What comes back for a datagram, if anything does. Nonsense is not answered.
    pub(crate) fn hear(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        if datagram.len() < 14 || datagram[0] != 6 || datagram[3] != 7 {
            return None;
        }
        if datagram[4] == 0 {
            return self.before_a_session(&datagram[14..]);
        }
        let (kind, session, sequence) = (datagram[5], number(&datagram[6..]), number(&datagram[10..]));
        let length = usize::from(u16::from_le_bytes([*datagram.get(14)?, *datagram.get(15)?]));
        let payload = datagram.get(16..16 + length)?;
        match kind {
            0x10 if length >= 32 => self.open(payload),
            0x12 if length >= 28 => self.rakp2(payload),
            0x14 if length >= 8 => self.rakp4(payload),
            0xc0 => self.message(session, sequence, payload, datagram),
            _ => None,
        }
    }

    fn before_a_session(&self, message: &[u8]) -> Option<Vec<u8>> {
        if message.len() < 9 || message[5] != 0x38 || sum(message) != 0 {
            return None;
        }
        let (kinds, extended) = if self.ipmi_2 { (0x80, 0x02) } else { (0x04, 0x00) };
        let kg = if self.kg.is_empty() { 0 } else { 0x20 };
        let reply = reply(message, 0, &[1, kinds, 0x04 | kg, extended, 0, 0, 0, 0]);
        let length = u8::try_from(reply.len()).unwrap();
        Some([&[6, 0, 0xff, 7, 0][..], &[0; 8], &[length], &reply].concat())
    }

    fn open(&mut self, asked: &[u8]) -> Option<Vec<u8>> {
        let wanted = [asked[12], asked[20], asked[28]];
        let known = |suites: &[u8]| suites.iter().copied().find(|suite| algorithms(*suite) == wanted);
        if known(&self.deaf_to).is_some() {
            return None;
        }
        let refused = |status| Some(outside(0x11, &[&[asked[0], status, 0, 0], &asked[4..8]].concat()));
        if self.full {
            return refused(0x01);
        }
        // The shortest refusal that was seen at a BMC of others: it ends with the status.
        let Some(suite) = self.insists_on.or(known(&self.suites)) else {
            return Some(outside(0x11, &[asked[0], 0x04]));
        };
        self.next += 1;
        let open = Open {
            suite,
            console: number(&asked[4..]),
            console_random: vec![],
            random: random::<16>().to_vec(),
            user: vec![],
            role: 0,
            sik: vec![],
            ready: false,
            level: 2,
            heard: vec![],
            sequence: 0,
        };
        self.sessions.insert(self.next, open);
        let [a, b, c] = algorithms(suite);
        let chosen = [[0, 0, 0, 8, a, 0, 0, 0], [1, 0, 0, 8, b, 0, 0, 0], [2, 0, 0, 8, c, 0, 0, 0]].concat();
        let head = [asked[0], 0, self.privilege, 0];
        Some(outside(0x11, &[&head, &asked[4..8], &self.next.to_le_bytes(), &chosen[..]].concat()))
    }

    fn rakp2(&mut self, asked: &[u8]) -> Option<Vec<u8>> {
        let id = number(&asked[4..]);
        let (guid, limit) = (self.guid, self.privilege);
        let session = self.sessions.get_mut(&id)?;
        let console = session.console.to_le_bytes();
        let refused = |status| Some(outside(0x13, &[&[asked[0], status, 0, 0][..], &console].concat()));
        session.console_random = asked[8..24].to_vec();
        session.role = asked[24];
        session.user = asked.get(28..28 + usize::from(asked[27]))?.to_vec();
        if session.user != self.user.as_bytes() {
            return refused(0x0d);
        }
        if self.strict_login && session.role & 0x0f > limit {
            return refused(0x0a);
        }
        let user = [&[session.role, asked[27]], &session.user[..]].concat();
        let both = [&session.console_random[..], &session.random].concat();
        let proof = sign(session.suite, self.password.as_bytes(), &[&console, &id.to_le_bytes(), &both, &guid, &user]);
        let head = [asked[0], 0, 0, 0];
        Some(outside(0x13, &[&head[..], &console, &session.random, &guid, &proof].concat()))
    }

    fn rakp4(&mut self, asked: &[u8]) -> Option<Vec<u8>> {
        let id = number(&asked[4..]);
        if asked[1] != 0 {
            self.record.push("wrong proof");
            self.sessions.remove(&id);
            return None;
        }
        let guid = self.guid;
        let session = self.sessions.get_mut(&id)?;
        let (suite, console) = (session.suite, session.console.to_le_bytes());
        let user = [&[session.role, u8::try_from(session.user.len()).unwrap()], &session.user[..]].concat();
        let expected = sign(suite, self.password.as_bytes(), &[&session.random, &console, &user]);
        if asked[8..] != expected {
            return Some(outside(0x15, &[&[asked[0], 0x0f, 0, 0][..], &console].concat()));
        }
        let key = if self.kg.is_empty() { self.password.as_bytes() } else { &self.kg };
        session.sik = sign(suite, key, &[&session.console_random, &session.random, &user]);
        session.ready = true;
        let proof = sign(suite, &session.sik, &[&session.console_random, &id.to_le_bytes(), &guid]);
        Some(outside(0x15, &[&[asked[0], 0, 0, 0][..], &console, &proof[..short(suite)]].concat()))
    }

    fn message(&mut self, id: u32, sequence: u32, payload: &[u8], datagram: &[u8]) -> Option<Vec<u8>> {
        let session = self.sessions.get_mut(&id).filter(|session| session.ready)?;
        let suite = session.suite;
        let (covered, code) = datagram[4..].split_at_checked(datagram.len().checked_sub(4 + short(suite))?)?;
        let (k1, k2) = (sign(suite, &session.sik, &[&[1; 20]]), sign(suite, &session.sik, &[&[2; 20]]));
        if code != &sign(suite, &k1, &[covered])[..short(suite)] || session.heard.contains(&sequence) {
            return None;
        }
        session.heard.push(sequence);
        let key: [u8; 16] = k2[..16].try_into().unwrap();
        let (first, text) = payload.split_at(16);
        let first: [u8; 16] = first.try_into().unwrap();
        let mut text = text.to_vec();
        let mut mode = cbc::Decryptor::<Aes128>::new(&key.into(), &first.into());
        text.chunks_mut(16).for_each(|block| mode.decrypt_block(block.try_into().unwrap()));
        let pads = usize::from(*text.last().unwrap());
        text.truncate(text.len() - pads - 1);
        let answer = self.asked(id, &text)?;
        // It was there when this was asked, and is told goodbye even if it is gone now.
        let session = self.sessions.get_mut(&id)?;
        session.sequence += 1;
        let packet = sealed(session, &k1, key, &answer);
        self.sessions.retain(|_, session| session.level != GONE);
        Some(packet)
    }

    fn asked(&mut self, id: u32, message: &[u8]) -> Option<Vec<u8>> {
        assert!(sum(&message[..3]) == 0 && sum(&message[3..]) == 0, "a wrong sum");
        let (function, command, data) = (message[1] >> 2, message[5], &message[6..message.len() - 1]);
        let session = self.sessions.get_mut(&id)?;
        let operator = session.level >= 3;
        let (code, said): (u8, Vec<u8>) = match (function, command) {
            (0x06, 0x3b) if data[0] > self.privilege => (0x81, vec![]),
            (0x06, 0x3b) => {
                session.level = data[0];
                (0, vec![data[0]])
            }
            (0x06, 0x3c) => {
                session.level = GONE;
                self.record.push("close");
                (0, vec![])
            }
            (0x06, 0x37) if self.no_guid => (0xc1, vec![]),
            (0x06, 0x37) => {
                self.record.push("guid");
                (0, self.guid.to_vec())
            }
            (0x0a, 0x10 | 0x11) if self.fru.is_empty() => (0xcb, vec![]),
            (0x0a, 0x10) => {
                let [low, high] = u16::try_from(self.fru.len()).unwrap().to_le_bytes();
                (0, vec![low, high, u8::from(self.fru_words)])
            }
            (0x0a, 0x11) if self.fru_mute => return None,
            (0x0a, 0x11) => self.fru_data(data),
            (0x00, 0x01) if self.short_status => (0, vec![u8::from(self.power)]),
            (0x00, 0x01) => {
                self.record.push("status");
                (0, vec![0x20 | u8::from(self.power), 0x00, 0x40, 0x00])
            }
            (0x00, 0x02) if !operator => (0xd4, vec![]),
            (0x00, 0x02) => match (if self.codes.is_empty() { 0 } else { self.codes.remove(0) }, data[0]) {
                (0, what @ (0 | 1)) => {
                    self.power = what == 1;
                    self.record.push(if self.power { "on" } else { "off" });
                    (0, vec![])
                }
                (0, _) => panic!("neither off nor on"),
                (code, _) => (code, vec![]),
            },
            _ => (0xc1, vec![]),
        };
        Some(reply(message, code, &said))
    }
}

impl Bmc {
    fn fru_data(&mut self, data: &[u8]) -> (u8, Vec<u8>) {
        self.record.push("fru");
        let unit = if self.fru_words { 2 } else { 1 };
        let (at, count) = (usize::from(u16::from_le_bytes([data[1], data[2]])) * unit, usize::from(data[3]) * unit);
        if count > self.fru_piece.into() {
            return (0xca, vec![]);
        }
        match self.fru.get(at..(at + count).min(self.fru.len())) {
            Some(piece) => (0, [&[u8::try_from(piece.len() / unit).unwrap()], piece].concat()),
            None => (0xc9, vec![]),
        }
    }
}

/// The level of a session that was closed.
const GONE: u8 = 0xff;

fn reply(asked: &[u8], code: u8, said: &[u8]) -> Vec<u8> {
    let first = [asked[3], asked[1] | 0x04];
    let second = [&[asked[0], asked[4], asked[5], code], said].concat();
    [&first[..], &[sum(&first)], &second, &[sum(&second)]].concat()
}

fn sealed(session: &Open, k1: &[u8], key: [u8; 16], message: &[u8]) -> Vec<u8> {
    let first = random::<16>();
    let mut text = message.to_vec();
    let pads = u8::try_from(15 - message.len() % 16).unwrap();
    text.extend(1..=pads);
    text.push(pads);
    let mut mode = cbc::Encryptor::<Aes128>::new(&key.into(), &first.into());
    text.chunks_mut(16).for_each(|block| mode.encrypt_block(block.try_into().unwrap()));
    let length = u16::try_from(16 + text.len()).unwrap().to_le_bytes();
    let (console, sequence) = (session.console.to_le_bytes(), session.sequence.to_le_bytes());
    // 12 bytes of header, whole blocks, two pads and what closes them: a whole number of four bytes.
    let covered = [&[6, 0xc0][..], &console, &sequence, &length, &first, &text, &[0xff, 0xff, 2, 7]].concat();
    let code = sign(session.suite, k1, &[&covered]);
    [&[6, 0, 0xff, 7][..], &covered, &code[..short(session.suite)]].concat()
}
