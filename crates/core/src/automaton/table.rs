//! Automaton / table: every move from one phase to another that `step` can make.
//!
//! The file of each phase decides; this table only names what can be decided, so that a test can ask for each. Random walks
//! find no move that is not in here (`tests/properties.rs`), and the simulation tells how often it saw each.

/// From, to: by the names of the phases, in the order of the flow.
pub const TRANSITIONS: &[(&str, &str)] = &[
    ("New", "Isolating"),
    ("New", "Returning"),
    ("New", "Final"),
    ("New", "Failed"),
    ("Isolating", "Isolated"),
    ("Isolating", "Returning"),
    ("Isolating", "Failed"),
    ("Isolated", "Isolating"),
    ("Isolated", "PoweringOff"),
    ("Isolated", "PoweringOn"),
    ("Isolated", "Returning"),
    ("Isolated", "Failed"),
    ("PoweringOff", "Isolated"),
    ("PoweringOff", "Returning"),
    ("PoweringOff", "Failed"),
    ("PoweringOn", "Returning"),
    ("PoweringOn", "Failed"),
    ("Returning", "PoweringOn"),
    ("Returning", "Recovering"),
    ("Returning", "Final"),
    ("Returning", "Failed"),
    ("Recovering", "Returning"),
    ("Recovering", "Final"),
    ("Recovering", "Failed"),
    ("Final", "PoweringOn"),
    ("Failed", "New"),
    ("Failed", "Isolated"),
    ("Failed", "Returning"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fence::Phase;

    #[test]
    fn the_table_knows_every_phase_and_names_each_move_once() {
        let distinct: BTreeSet<_> = TRANSITIONS.iter().collect();
        assert_eq!(distinct.len(), TRANSITIONS.len());
        let entered: BTreeSet<&str> = TRANSITIONS.iter().map(|(_, to)| *to).collect();
        let left: BTreeSet<&str> = TRANSITIONS.iter().map(|(from, _)| *from).collect();
        assert_eq!(entered, BTreeSet::from(Phase::NAMES), "each phase can be entered");
        assert_eq!(left, BTreeSet::from(Phase::NAMES), "each phase can be left");
    }
}
