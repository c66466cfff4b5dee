//! Story / nature: what the truth says, whatever anybody believes.

use palisade_cluster::machines::bmc::{Command, Fate};
use palisade_cluster::machines::machine::{KubeletState, Power, Switch};
use palisade_cluster::truth::{Event, What};

use super::{Beat, Cast, Room};
use crate::demo::split::Mark;

/// The line of an event, if it has one. Who writes is told by whoever keeps count of it.
pub(in crate::demo) fn of_event(event: &Event, cast: &Cast) -> Option<Beat> {
    let beat = |room, text| Beat::new(event.at, room, text);
    match &event.what {
        What::Told { node, command } => Some(beat(Room::Done, format!("{node}: its BMC is told {}", words(*command)))),
        What::Power { node, was, is, .. } => {
            let line = match (was, is) {
                (Power::PoweringOff, Power::Off) => beat(Room::World, format!("{node} is off")),
                (_, Power::Off) => {
                    beat(Room::World, format!("{node} is off: its memory is gone, and its processes with it"))
                }
                (_, Power::On) => beat(Room::World, format!("{node} has power and boots")),
                _ => return None,
            };
            Some(line.marks_if(*is == Power::Off && **node == *cast.home, Mark::Isolated))
        }
        What::Kubelet { node, is: KubeletState::Running } => {
            Some(beat(Room::World, format!("the kubelet of {node} is up")))
        }
        _ => None,
    }
}

fn words(command: Command) -> String {
    let switch = match command.switch {
        Switch::On => "on",
        Switch::ForceOff => "off",
        Switch::GracefulOff => "to shut down",
        Switch::Restart => "to restart",
    };
    let fate = match command.fate {
        Fate::Done => "and does it",
        Fate::Late => "and will do it late",
        Fate::Ignored => "says yes, and does nothing",
        Fate::Refused => "and refuses",
        Fate::Lost => "and does not answer",
    };
    format!("{switch}, {fate}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn told(what: What) -> Option<(String, Option<Mark>)> {
        let cast = Cast { home: "n3".to_owned(), ..Cast::default() };
        of_event(&Event { at: Duration::ZERO, what }, &cast).map(|beat| (beat.text, beat.mark))
    }

    #[test]
    fn a_bmc_that_lies_is_told_as_one() {
        let command = Command { switch: Switch::ForceOff, fate: Fate::Ignored };
        let line = told(What::Told { node: "n3".into(), command });
        assert_eq!(line, Some(("n3: its BMC is told off, says yes, and does nothing".to_owned(), None)));
    }

    #[test]
    fn off_is_what_the_machine_is_not_what_the_bmc_says() {
        let power = |node: &str, is| told(What::Power { node: node.into(), was: Power::PoweringOff, is, boot: None });
        assert_eq!(power("n3", Power::Off), Some(("n3 is off".to_owned(), Some(Mark::Isolated))));
        assert_eq!(power("n1", Power::Off), Some(("n1 is off".to_owned(), None)), "another node is another story");
        assert_eq!(power("n3", Power::PoweringOn), None);
    }
}
