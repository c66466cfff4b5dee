//! IPMI / inventory: the memory in which a machine's makers wrote down what it is, read in pieces.
//!
//! Promise: whatever goes wrong, the serial number is not known; nothing in here fails a call, and none of it takes longer
//! than [`PATIENCE`]. A fence does not wait for a label.

use std::time::Duration;

use tokio::time::timeout;

use super::codes::DONE;
use super::fru::{self, UNIT};
use super::message::{Request, STORAGE};
use super::session::Session;

const GET_INVENTORY_AREA: u8 = 0x10;
const READ_INVENTORY: u8 = 0x11;

/// The inventory of the machine itself. Others are those of its parts.
const THE_MACHINE: u8 = 0;

/// For all of it. A quick BMC takes a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// An area longer than this is no list of names and numbers.
const LONGEST: u16 = 1024;

/// How much is asked for at once: first as much as most BMCs give, then as little as all of them do.
const PIECES: [u8; 2] = [32, 16];

/// The codes by which a BMC says that it was asked for too much at once.
const TOO_MUCH: [u8; 3] = [0xc7, 0xc8, 0xca];

/// The serial number of the machine, if its inventory tells.
pub(super) async fn serial(session: &mut Session) -> Option<String> {
    timeout(PATIENCE, look(session)).await.ok().flatten()
}

async fn look(session: &mut Session) -> Option<String> {
    let mut memory = Memory::open(session).await?;
    let header = memory.read(0, UNIT).await?;
    for (area, begins) in fru::areas(&header) {
        // One that cannot be read says nothing about the others.
        let Some(start) = memory.read(begins, UNIT).await else { continue };
        let Some(length) = fru::length(&start).filter(|length| *length <= LONGEST) else { continue };
        let Some(whole) = memory.read(begins, length).await else { continue };
        if let Some(serial) = area.serial(&whole) {
            return Some(serial);
        }
    }
    None
}

/// The memory, as long as it is.
struct Memory<'a> {
    session: &'a mut Session,
    size: u16,
    /// Whether it counts in words of two bytes.
    in_words: bool,
    piece: u8,
}

impl<'a> Memory<'a> {
    async fn open(session: &'a mut Session) -> Option<Self> {
        let data = [THE_MACHINE];
        let request = Request { function: STORAGE, command: GET_INVENTORY_AREA, data: &data };
        let reply = session.ask(&request, "the size of the inventory", None).await.ok()?.reply;
        let (DONE, [low, high, access, ..]) = (reply.code, reply.data.as_slice()) else { return None };
        let [piece, _] = PIECES;
        Some(Self { session, size: u16::from_le_bytes([*low, *high]), in_words: access & 1 != 0, piece })
    }

    /// So many bytes from there on, or nothing.
    async fn read(&mut self, begins: u16, length: u16) -> Option<Vec<u8>> {
        let ends = begins.checked_add(length).filter(|ends| *ends <= self.size)?;
        let mut bytes = Vec::new();
        let mut at = begins;
        while at < ends {
            let wanted = (ends - at).min(self.piece.into());
            let piece = match self.piece(at, u8::try_from(wanted).ok()?).await? {
                Piece::Bytes(piece) => piece,
                Piece::TooMuch => continue,
            };
            at = at.checked_add(u16::try_from(piece.len()).ok()?)?;
            bytes.extend(piece);
        }
        (at == ends).then_some(bytes)
    }

    /// At most as much as was asked for, and never nothing: so a memory has an end.
    async fn piece(&mut self, at: u16, wanted: u8) -> Option<Piece> {
        let unit: u8 = if self.in_words { 2 } else { 1 };
        let [low, high] = (at / u16::from(unit)).to_le_bytes();
        let data = [THE_MACHINE, low, high, wanted / unit];
        let request = Request { function: STORAGE, command: READ_INVENTORY, data: &data };
        let reply = self.session.ask(&request, "the inventory", None).await.ok()?.reply;
        let [_, smaller] = PIECES;
        match (reply.code, reply.data.as_slice()) {
            (code, _) if TOO_MUCH.contains(&code) && wanted > smaller => {
                self.piece = smaller;
                Some(Piece::TooMuch)
            }
            (DONE, [count, piece @ ..]) => {
                let whole = usize::from(*count) * usize::from(unit) == piece.len();
                let fits = !piece.is_empty() && piece.len() <= wanted.into();
                (whole && fits).then(|| Piece::Bytes(piece.to_vec()))
            }
            _ => None,
        }
    }
}

enum Piece {
    Bytes(Vec<u8>),
    TooMuch,
}
