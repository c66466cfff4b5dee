//! Faults: what goes wrong in a run, and when. A swarm: each seed gets a random few kinds of fault, so that rare combinations
//! meet and no kind drowns the others.

use std::fmt;
use std::time::Duration;

use palisade_cluster::dice::Dice;
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::Link;

/// One thing that goes wrong, or is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A machine loses its power.
    PowerOff(String),
    /// Somebody presses its button.
    OutsideOn(String),
    /// A link of it is cut.
    Cut(String, Link),
    /// It is mended.
    Heal(String, Link),
    /// Its kubelet hangs.
    Hang(String),
    /// It goes on.
    Resume(String),
    /// It stands still with its memory.
    Suspend(String),
    /// Its BMC behaves like this from now on.
    Bmc(String, Behaviour),
    /// An admin, or an autoscaler, deletes its Node.
    DeleteNode(String),
    /// An admin takes our taint off.
    TakeTaintOff(String),
    /// An admin deletes its NodeFence: that means stop.
    DeleteFence(String),
    /// An admin applies the policy again: its status is empty.
    PolicyAgain,
    /// An operator process ends in the middle of what it does, and another one starts.
    CrashOperator(usize),
    /// The API server hears nobody for a while: from the operators.
    Blackout(Duration),
    /// Watches of the operators stand still for a while.
    FreezeWatches(Duration),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Fault {
    /// The kind, for the account of what was reached.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::PowerOff(_) => "power-off",
            Self::OutsideOn(_) => "outside-on",
            Self::Cut(..) => "cut",
            Self::Heal(..) => "heal",
            Self::Hang(_) => "hang",
            Self::Resume(_) => "resume",
            Self::Suspend(_) => "suspend",
            Self::Bmc(..) => "bmc",
            Self::DeleteNode(_) => "delete-node",
            Self::TakeTaintOff(_) => "take-taint-off",
            Self::DeleteFence(_) => "delete-fence",
            Self::PolicyAgain => "policy-again",
            Self::CrashOperator(_) => "crash-operator",
            Self::Blackout(_) => "blackout",
            Self::FreezeWatches(_) => "freeze-watches",
        }
    }
}

/// How lossy the wire between operators and API server is, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Requests that never arrive.
    pub lost: u64,
    /// Replies that never arrive.
    pub replies: u64,
    /// Requests that are answered with 500, 503 or 429.
    pub errors: u64,
    /// The longest latency in milliseconds.
    pub latency: u64,
}

/// What goes wrong in a run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// When, and what; in order.
    pub faults: Vec<(Duration, Fault)>,
    /// The wire.
    pub losses: Losses,
    /// How many operators there are.
    pub operators: usize,
}

/// From here on nothing goes wrong any more, and everything has to end well.
pub const QUIET: Duration = Duration::from_mins(15);

/// Before this nothing goes wrong: a new operator keeps quiet for a while, too.
const CALM: u64 = 90;

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64, nodes: usize) -> Self {
        let mut dice = Dice::new(seed, "faults");
        let mut plan = Self { operators: 1 + usize::try_from(dice.below(2)).unwrap_or(0), ..Self::default() };
        let mut kinds: Vec<u64> = (0..12).filter(|_| dice.below(3) == 0).collect();
        if kinds.is_empty() {
            kinds.push(dice.below(2));
        }
        if dice.below(2) == 0 {
            plan.losses = Losses {
                lost: dice.below(20),
                replies: dice.below(20),
                errors: dice.below(20),
                latency: 5 + dice.below(200),
            };
        }
        for _ in 0..=dice.below(6) {
            let at = CALM + dice.below(QUIET.as_secs() - CALM - 120);
            let node = format!("n{}", 1 + dice.below(u64::try_from(nodes).unwrap_or(1)));
            let kind = kinds[usize::try_from(dice.below(u64::try_from(kinds.len()).unwrap_or(1))).unwrap_or(0)];
            plan.add(&mut dice, kind, at, node);
        }
        plan.faults.sort_by_key(|(at, _)| *at);
        plan
    }

    fn add(&mut self, dice: &mut Dice, kind: u64, at: u64, node: String) {
        let secs = Duration::from_secs;
        let mut push = |at: u64, fault: Fault| self.faults.push((secs(at), fault));
        match kind {
            0 => push(at, Fault::PowerOff(node)),
            1 => {
                push(at, Fault::Cut(node.clone(), Link::Api));
                if dice.below(2) == 0 {
                    push(at, Fault::Cut(node.clone(), Link::Peers));
                }
                let healed = at + 20 + dice.below(300);
                push(healed, Fault::Heal(node.clone(), Link::Api));
                push(healed, Fault::Heal(node, Link::Peers));
            }
            2 => {
                push(at, Fault::Hang(node.clone()));
                push(at + 20 + dice.below(200), Fault::Resume(node));
            }
            3 => {
                push(at, Fault::PowerOff(node.clone()));
                push(at + dice.below(40), Fault::OutsideOn(node));
            }
            4 => {
                let behaviours = [
                    Behaviour::Silent,
                    Behaviour::Unreachable,
                    Behaviour::Refuses(500),
                    Behaviour::AcceptsOnly,
                    Behaviour::Slow(secs(3)),
                    Behaviour::Late(secs(15)),
                ];
                let pick = usize::try_from(dice.below(6)).unwrap_or(0);
                push(at, Fault::Bmc(node.clone(), behaviours[pick].clone()));
                push(at + dice.below(10), Fault::PowerOff(node.clone()));
                push(at + 60 + dice.below(120), Fault::Bmc(node, Behaviour::Honest));
            }
            5 => {
                push(at, Fault::PowerOff(node.clone()));
                push(at + 12 + dice.below(25), Fault::DeleteNode(node));
            }
            6 => {
                push(at, Fault::PowerOff(node.clone()));
                push(at + 12 + dice.below(20), Fault::TakeTaintOff(node));
            }
            7 => {
                push(at, Fault::PowerOff(node.clone()));
                push(at + 12 + dice.below(40), Fault::DeleteFence(node));
            }
            8 => {
                push(at, Fault::PowerOff(node));
                push(at + 10 + dice.below(20), Fault::PolicyAgain);
            }
            9 => {
                push(at, Fault::PowerOff(node));
                let which = usize::try_from(dice.below(2)).unwrap_or(0);
                push(at + 10 + dice.below(30), Fault::CrashOperator(which));
                push(at + 12 + dice.below(30), Fault::CrashOperator(which));
            }
            10 => {
                push(at, Fault::PowerOff(node));
                push(at + dice.below(30), Fault::Blackout(secs(5 + dice.below(40))));
            }
            _ => {
                push(at, Fault::Cut(node.clone(), Link::Api));
                push(at + dice.below(30), Fault::FreezeWatches(secs(5 + dice.below(60))));
                push(at + 90, Fault::Heal(node, Link::Api));
            }
        }
    }
}
