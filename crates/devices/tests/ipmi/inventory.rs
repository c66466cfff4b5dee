//! The inventory of a machine, written as its makers write it, apart from what reads it.

/// The texts of the three areas, in their order.
pub(crate) struct Inventory {
    pub(crate) chassis: Vec<&'static str>,
    pub(crate) board: Vec<&'static str>,
    pub(crate) product: Vec<&'static str>,
}

impl Inventory {
    pub(crate) fn of_a_server() -> Self {
        Self {
            chassis: vec!["CSE-1", "C-4711"],
            board: vec!["ACME", "X11", "B-1234", "MB-1"],
            product: vec!["ACME", "Pizzabox", "PB-2", "rev 3", "S-0815", "tag"],
        }
    }

    /// The whole memory: a header, the areas, and nothing behind them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let areas = [
            (2, area(&[0x17], &self.chassis)),
            (3, area(&[0x19, 0, 0, 0], &self.board)),
            (4, area(&[0x19], &self.product)),
        ];
        let (mut memory, mut header) = (vec![0; 8], [1, 0, 0, 0, 0, 0, 0, 0]);
        for (place, area) in areas.into_iter().filter(|(_, area)| !area.is_empty()) {
            header[place] = u8::try_from(memory.len() / 8).unwrap();
            memory.extend(area);
        }
        header[7] = closing(&header);
        memory[..8].copy_from_slice(&header);
        memory
    }
}

fn area(head: &[u8], texts: &[&str]) -> Vec<u8> {
    if texts.is_empty() {
        return vec![];
    }
    let field = |text: &&str| [&[0xc0 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let mut area = [&[1, 0], head, &texts.iter().flat_map(field).collect::<Vec<u8>>(), &[0xc1]].concat();
    area.resize((area.len() + 1).div_ceil(8) * 8 - 1, 0);
    area[1] = u8::try_from((area.len() + 1) / 8).unwrap();
    area.push(closing(&area));
    area
}

/// What makes the sum of all bytes zero.
fn closing(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte))
}

/// The bytes as ipmi_sim takes them.
pub(crate) fn listed(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:#04x}")).collect::<Vec<_>>().join(" ")
}
