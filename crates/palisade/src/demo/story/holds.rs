//! Story / holds: an answer that is replaced at once was only a step on the way, and nobody waited for it.
//!
//! Promise: every hold that lasts is told, once; one that does not is left out.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Beat, Room};

/// How long a request is held before people hear of it.
const LASTS: Duration = Duration::from_secs(2);

/// Holds that have not lasted yet, by the name of their request.
#[derive(Debug, Default)]
pub(in crate::demo) struct Holds {
    young: BTreeMap<String, Beat>,
}

impl Holds {
    /// What is to be told by now, in its order.
    pub(in crate::demo) fn sift(&mut self, beats: Vec<Beat>, now: Duration) -> Vec<Beat> {
        let mut told = Vec::new();
        for beat in beats {
            told.extend(self.lasting(beat.at));
            let Some(request) = &beat.answers else {
                told.push(beat);
                continue;
            };
            self.young.remove(request);
            if beat.room == Room::Held {
                self.young.insert(request.clone(), beat);
            } else {
                told.push(beat);
            }
        }
        told.extend(self.lasting(now));
        told
    }

    fn lasting(&mut self, now: Duration) -> Vec<Beat> {
        let lasting = |beat: &Beat| beat.at + LASTS <= now;
        let names: Vec<String> =
            self.young.iter().filter(|(_, beat)| lasting(beat)).map(|(name, _)| name.clone()).collect();
        let mut beats: Vec<Beat> = names.iter().filter_map(|name| self.young.remove(name)).collect();
        for beat in &mut beats {
            beat.at += LASTS;
        }
        beats.sort_by_key(|beat| beat.at);
        beats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(at: u64, room: Room, text: &str) -> Beat {
        Beat { answers: Some("n3-x".to_owned()), ..Beat::new(Duration::from_secs(at), room, text) }
    }

    fn told(beats: Vec<Beat>, now: u64) -> Vec<String> {
        Holds::default().sift(beats, Duration::from_secs(now)).into_iter().map(|beat| beat.text).collect()
    }

    #[test]
    fn a_hold_that_passes_at_once_is_not_told() {
        let beats = vec![answer(9, Room::Held, "OthersUnheard"), answer(10, Room::Decided, "admitted")];
        assert_eq!(told(beats, 60), ["admitted"]);
        let beats = vec![answer(9, Room::Held, "OthersUnheard"), answer(9, Room::Held, "StormBrake")];
        assert_eq!(told(beats, 60), ["StormBrake"], "the one that lasts is");
    }

    #[test]
    fn a_hold_that_lasts_is_told_before_what_follows_and_once() {
        let mut holds = Holds::default();
        assert!(holds.sift(vec![answer(9, Room::Held, "Paused")], Duration::from_secs(10)).is_empty());
        let after = Beat::new(Duration::from_secs(12), Room::World, "later");
        let beats = holds.sift(vec![after], Duration::from_secs(12));
        let words: Vec<_> = beats.iter().map(|beat| (beat.at.as_secs(), beat.text.as_str())).collect();
        assert_eq!(words, [(11, "Paused"), (12, "later")]);
        assert!(holds.sift(Vec::new(), Duration::from_secs(90)).is_empty());
    }
}
