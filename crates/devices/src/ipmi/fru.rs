//! IPMI / fru: the serial number in the inventory of a machine (FRU), from the bytes of its memory.
//!
//! Promise: any bytes can be read, and none panic. A sum that does not add up, a length that is not there, an encoding that is
//! no text: the serial number is not known, which is no error and no guess.
//!
//! ```text
//! header   01 | - | chassis | board | product | - | - | sum     where each area begins, in eights of bytes; 0: there is none
//! chassis  01 | length | type               | part number, serial number, ..       | c1 | .. | sum
//! board    01 | length | language | date 3  | manufacturer, name, serial number, .. | c1 | .. | sum
//! product  01 | length | language           | manufacturer, name, part number, version, serial number, .. | c1 | .. | sum
//! ```
//! Each field begins with its encoding (2 bits) and its length (6 bits). Everything in an area, with its sum, adds up to zero.

/// How many bytes the header has, and the unit of whatever it says.
pub(super) const UNIT: u16 = 8;

/// The version of the header and of each area.
const VERSION: u8 = 0x01;

/// Stands where a further field would begin.
const END: u8 = 0xc1;

/// An area that has a serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    Chassis,
    Board,
    Product,
}

/// The areas that a header names and where they begin, that first whose serial number is most likely the one on the machine's
/// label: the product's, which is also what the firmware calls the system's, then the chassis', then the board's.
pub(super) fn areas(header: &[u8]) -> Vec<(Area, u16)> {
    let [VERSION, _internal, chassis, board, product, _records, _, _sum] = header else { return Vec::new() };
    if !adds_up(header) {
        return Vec::new();
    }
    let all = [(Area::Product, *product), (Area::Chassis, *chassis), (Area::Board, *board)];
    let there = all.into_iter().filter(|(_, begins)| *begins != 0);
    there.map(|(area, begins)| (area, u16::from(begins) * UNIT)).collect()
}

/// How long an area is, by what it begins with.
pub(super) fn length(start: &[u8]) -> Option<u16> {
    let [VERSION, length, ..] = start else { return None };
    (*length != 0).then(|| u16::from(*length) * UNIT)
}

impl Area {
    /// The serial number in the whole of this area.
    pub(super) fn serial(self, area: &[u8]) -> Option<String> {
        if usize::from(length(area)?) != area.len() || !adds_up(area) {
            return None;
        }
        // What comes before the fields, and how many fields come before the serial number.
        let (head, before) = match self {
            Self::Chassis => (3, 1),
            Self::Board => (6, 2),
            Self::Product => (3, 4),
        };
        let (_sum, body) = area.split_last()?;
        let mut rest = body.get(head..)?;
        for _ in 0..before {
            rest = field(rest)?.1;
        }
        let (encoding, bytes) = field(rest)?.0;
        let text = text(encoding, bytes)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// The encoding and the bytes of a field.
type Field<'a> = (u8, &'a [u8]);

/// The first field, and what is behind it.
fn field(bytes: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (head, rest) = bytes.split_first()?;
    if *head == END {
        return None;
    }
    let (value, rest) = rest.split_at_checked(usize::from(head & 0x3f))?;
    Some(((head >> 6, value), rest))
}

fn text(encoding: u8, bytes: &[u8]) -> Option<String> {
    match encoding {
        // Digits, two in a byte.
        1 => bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]).map(digit).collect(),
        // Letters of six bits, four in three bytes, the lowest bits first.
        2 => {
            let bit = |index: usize| bytes.get(index / 8).map_or(0, |byte| (byte >> (index % 8)) & 1);
            let letter = |index: usize| (0..6).fold(0_u8, |known, place| known | (bit(index * 6 + place) << place));
            Some((0..bytes.len() * 8 / 6).map(|index| char::from(b' ' + letter(index))).collect())
        }
        // Latin-1, or some other writing: of both only what is plain in either. Some boards fill up with zeros.
        3 => {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let plain = |byte: &u8| (b' '..=b'~').contains(byte).then(|| char::from(*byte));
            bytes.iter().take(end).map(plain).collect()
        }
        // Binary: what it means, only its maker knows.
        _ => None,
    }
}

fn digit(number: u8) -> Option<char> {
    match number {
        0..=9 => Some(char::from(b'0' + number)),
        10 => Some(' '),
        11 => Some('-'),
        12 => Some('.'),
        _ => None,
    }
}

fn adds_up(bytes: &[u8]) -> bool {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An area with these fields behind its head, filled up and with its sum.
    fn area(head: &[u8], fields: &[&[u8]]) -> Vec<u8> {
        let mut bytes = [&[VERSION, 0], head, &fields.concat(), &[END]].concat();
        while bytes.len() % 8 != 7 {
            bytes.push(0);
        }
        bytes[1] = u8::try_from((bytes.len() + 1) / 8).unwrap();
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        bytes.push(sum.wrapping_neg());
        bytes
    }

    const MAKER: &[u8] = b"\xc4ACME";
    const NOTHING: &[u8] = b"\x00";

    #[test]
    fn each_area_has_its_serial_number_in_a_place_of_its_own() {
        let chassis = area(&[0x17], &[b"\xc3P-1", b"\xc4C-42"]);
        assert_eq!(Area::Chassis.serial(&chassis).as_deref(), Some("C-42"));
        let board = area(&[0, 1, 2, 3], &[MAKER, b"\xc3X10", b"\xc5B-042", b"\xc3P-2"]);
        assert_eq!(Area::Board.serial(&board).as_deref(), Some("B-042"));
        let product = area(&[0], &[MAKER, b"\xc3box", b"\xc3P-3", b"\xc2v1", b"\xc6 S-42 "]);
        assert_eq!(Area::Product.serial(&product).as_deref(), Some("S-42"), "without blanks");
    }

    #[test]
    fn text_is_read_in_each_encoding_that_is_text() {
        assert_eq!(text(1, &[0x12, 0x3a, 0xbc]).as_deref(), Some("123 -."));
        assert_eq!(text(1, &[0x1f]), None);
        // The example of the specification: IPMI in six bits.
        assert_eq!(text(2, &[0x29, 0xdc, 0xa6]).as_deref(), Some("IPMI"));
        assert_eq!(text(3, b"S-42\0\0").as_deref(), Some("S-42"));
        assert_eq!(text(3, b"S\0-42"), None);
        assert_eq!(text(3, "S-4\u{e9}".as_bytes()), None);
        assert_eq!(text(0, &[1, 2]), None);
    }

    #[test]
    fn a_field_that_is_missing_or_empty_is_not_known() {
        assert_eq!(Area::Product.serial(&area(&[0], &[MAKER, b"\xc3box"])), None);
        assert_eq!(Area::Product.serial(&area(&[0], &[MAKER, NOTHING, NOTHING, NOTHING, NOTHING])), None);
        assert_eq!(Area::Product.serial(&area(&[0], &[MAKER, NOTHING, NOTHING, NOTHING, b"\xc3   "])), None);
        assert_eq!(Area::Product.serial(&area(&[0], &[MAKER, NOTHING, NOTHING, NOTHING, b"\xff1"])), None, "too long");
    }

    #[test]
    fn one_wrong_bit_anywhere_and_nothing_is_known() {
        let right = area(&[0x17], &[b"\xc3P-1", b"\xc4C-42"]);
        for bit in 0..right.len() * 8 {
            let mut spoilt = right.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Area::Chassis.serial(&spoilt), None, "bit {bit}");
        }
    }

    #[test]
    fn a_header_names_the_areas_and_the_products_counts_first() {
        let header = [1, 0, 1, 5, 9, 0, 0, 0xf0];
        assert_eq!(areas(&header), [(Area::Product, 72), (Area::Chassis, 8), (Area::Board, 40)]);
        assert_eq!(areas(&[1, 0, 0, 5, 0, 0, 0, 0xfa]), [(Area::Board, 40)]);
        for wrong in [&header[..7], &[1, 0, 1, 5, 9, 0, 0, 0xf1], &[0xff; 8], &[]] {
            assert_eq!(areas(wrong), []);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = areas(&bytes);
            for area in [Area::Chassis, Area::Board, Area::Product] {
                let _ = area.serial(&bytes);
            }
            // And so that they get as far as the fields.
            bytes.resize(bytes.len().div_ceil(8).max(1) * 8, 0);
            let whole = bytes.len();
            bytes[0] = VERSION;
            bytes[1] = u8::try_from(whole / 8).unwrap();
            bytes[whole - 1] = 0;
            bytes[whole - 1] = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg();
            for area in [Area::Chassis, Area::Board, Area::Product] {
                let serial = area.serial(&bytes);
                prop_assert!(serial.is_none_or(|serial| serial.chars().all(|c| (' '..='_').contains(&c) || c.is_ascii_graphic())));
            }
        }
    }
}
