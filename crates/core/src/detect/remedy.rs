//! Detect / remedy: which remedy is due for what was found (003, `thresholdConfigs`).
//!
//! Promise: the first remedy is due when its threshold is reached, the next when the one before has had its period and
//! the evidence still stands, recovery when it has cleared. The period counts only time that somebody watched.
//! Never: goes one remedy further, or begins recovery, on evidence that cannot be told (I6).

use std::cmp::Reverse;
use std::fmt;

use crate::detect::sight::{Sight, Stint};
use crate::detect::{Finding, LOOK_AGAIN, Standing};
use crate::reason::detect::RemedyReason;
use crate::time::{Span, Tick};

/// What a remedy runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remedy {
    /// The node's `FenceConfig`, through a `NodeFencingRequest`.
    Fence,
    /// A `FenceTemplate`, by name.
    Template(Box<str>),
}

impl From<&str> for Remedy {
    fn from(name: &str) -> Self {
        match name {
            "fence" => Self::Fence,
            name => Self::Template(name.into()),
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fence => f.write_str("fence"),
            Self::Template(name) => f.write_str(name),
        }
    }
}

/// One remedy of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rung {
    /// What it runs.
    pub remedy: Remedy,
    /// Whether the node's pods may be released when it has isolated the node (003: clean resources).
    pub clean_resources: bool,
}

/// A later remedy: it cannot be written without the time that the one before is given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Later {
    /// The period of the remedy before.
    pub after: Span,
    /// The remedy.
    pub rung: Rung,
}

/// A threshold's remedies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemedyRule {
    /// The threshold's name.
    pub name: Box<str>,
    /// The higher wins; among equals the first in the file.
    pub priority: i32,
    /// Due when the threshold is reached.
    pub first: Rung,
    /// Due in turn, while it still stands.
    pub later: Vec<Later>,
    /// Due when it has cleared.
    pub recovery: Option<Remedy>,
}

/// How far a node's remedies have come: durable, but for the instant inside of the stint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Course {
    /// The rule whose remedies run.
    pub rule: Box<str>,
    /// How many of its remedies have been begun.
    pub begun: usize,
    /// Time watched since the last one was begun.
    pub watched: Stint,
}

/// What is to be done. `Run` and `Recover` are said once: the course has to be written before they are carried out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// Begin a remedy.
    Run {
        /// The remedy.
        rung: Rung,
        /// Why now.
        why: RemedyReason,
    },
    /// Nothing further yet.
    Wait {
        /// What is waited for.
        why: RemedyReason,
        /// When to look again.
        until: Tick,
    },
    /// Begin the recovery, if the rule names one; the course is over.
    Recover {
        /// The recovery.
        remedy: Option<Remedy>,
        /// Why now.
        why: RemedyReason,
    },
}

/// Decides which remedy is due, from the rules in the order of the file, each with its finding.
pub fn due(rules: &[(RemedyRule, Finding)], course: Option<Course>, sight: Sight, now: Tick) -> (Option<Course>, Due) {
    let winner = winner(rules);
    // A rule that was taken out of the file takes its course with it.
    let current = course.and_then(|course| {
        let (rule, finding) = rules.iter().find(|(rule, _)| rule.name == course.rule)?;
        Some((course, rule, finding))
    });
    match (current, winner) {
        (None, None) => (None, Due::Nothing),
        (None, Some(rule)) => begin(rule, sight, now),
        (Some((_, rule, _)), Some(other)) if other.priority > rule.priority => begin(other, sight, now),
        (Some((course, rule, finding)), _) => follow(course, rule, finding, sight, now),
    }
}

/// Of the rules that claim, the one with the highest priority; the sort is stable, so the first in the file.
fn winner(rules: &[(RemedyRule, Finding)]) -> Option<&RemedyRule> {
    let claims = rules.iter().filter(|(_, finding)| matches!(finding, Finding::Claim { .. }));
    claims.map(|(rule, _)| rule).min_by_key(|rule| Reverse(rule.priority))
}

fn begin(rule: &RemedyRule, sight: Sight, now: Tick) -> (Option<Course>, Due) {
    let why = RemedyReason::FirstDue { rule: rule.name.clone(), remedy: rule.first.remedy.clone() };
    (Some(begun(rule, 1, sight, now)), Due::Run { rung: rule.first.clone(), why })
}

fn begun(rule: &RemedyRule, begun: usize, sight: Sight, now: Tick) -> Course {
    let mut watched = Stint::default();
    watched.watch(sight, now);
    Course { rule: rule.name.clone(), begun, watched }
}

fn follow(mut course: Course, rule: &RemedyRule, finding: &Finding, sight: Sight, now: Tick) -> (Option<Course>, Due) {
    let name = rule.name.clone();
    let watched = course.watched.watch(sight, now);
    let wait = |course, why, until| (Some(course), Due::Wait { why, until });
    match finding.standing() {
        Standing::Cleared => {
            let why = RemedyReason::EvidenceCleared { rule: name };
            return (None, Due::Recover { remedy: rule.recovery.clone(), why });
        }
        Standing::Unsure => {
            let why = RemedyReason::EvidenceUnsure { rule: name, seen: finding.name().into() };
            return wait(course, why, finding.look_again(now));
        }
        Standing::Stands => {}
    }
    let Some(Later { after, rung }) = rule.later.get(course.begun.saturating_sub(1)) else {
        let why = RemedyReason::NoneLeft { rule: name, tried: course.begun };
        return wait(course, why, now + LOOK_AGAIN);
    };
    let period = *after;
    if watched < period {
        let until = now + period.left_after(watched);
        return wait(course, RemedyReason::StillTrying { rule: name, watched, period }, until);
    }
    let remedy = rung.remedy.clone();
    let why = RemedyReason::NextDue { rule: name, remedy, watched, period };
    (Some(begun(rule, course.begun.saturating_add(1), sight, now)), Due::Run { rung: rung.clone(), why })
}
