use super::*;

pub(super) const TEN: Span = Span::mins(10);

pub(super) fn node(number: usize) -> NodeName {
    NodeName::new(format!("worker-{number:04}"))
}

/// A BMC of its own for each node, with this login.
pub(super) fn bmc(number: usize, login: u64) -> Wired {
    let told = u64::try_from(number).unwrap();
    Wired {
        method: MethodName::from("off"),
        part: Part::Acts,
        template: Arc::from("bmc"),
        by: By::Us,
        interval: TEN,
        address: told,
        login: Login { which: login, secrets: 1 },
        told,
    }
}

fn cluster(nodes: usize, login: impl Fn(usize) -> u64) -> Rounds {
    let mut rounds = Rounds::default();
    for number in 0..nodes {
        rounds.follow(&node(number), vec![bmc(number, login(number))], Tick::START);
    }
    rounds
}

pub(super) fn nobody(_: &NodeName) -> bool {
    false
}

pub(super) fn silent() -> Outcome {
    Outcome::NoAnswer("no route".to_owned())
}

/// What was asked, and when, and by how many series, if every device answers at once.
fn played(rounds: &mut Rounds, until: Span, answer: impl Fn(&Key) -> Outcome) -> (Vec<(Tick, Key)>, usize) {
    let (mut asked, mut series) = (Vec::new(), 0);
    let mut now = Tick::START;
    while let Some(next) = rounds.wake().filter(|next| *next < Tick::START + until) {
        now = next.max(now + Span::millis(1));
        let begun = rounds.begin(nobody, now);
        series += usize::from(!begun.lines.is_empty());
        for key in begun.lines.into_iter().flatten() {
            let outcome = answer(&key);
            rounds.answered(&key, outcome, now);
            asked.push((now, key));
        }
    }
    (asked, series)
}

pub(super) fn at(seconds: u64) -> Tick {
    Tick::START + Span::secs(seconds)
}

#[test]
fn five_thousand_devices_that_share_a_secret_are_asked_in_their_interval_and_it_is_seldom_read() {
    let mut rounds = cluster(5_000, |_| 7);
    let (asked, series) = played(&mut rounds, Span::mins(60), |_| Outcome::Good);
    assert!((29_000..=31_000).contains(&asked.len()), "six times each: {}", asked.len());
    assert!(series <= 1_200, "one Secret every three seconds: {series}");
    let in_the_first_minute = asked.iter().filter(|(at, _)| *at < Tick::START + Span::mins(1)).count();
    assert!(in_the_first_minute < 800, "not all at once after a start: {in_the_first_minute}");
    assert_eq!(rounds.health()["bmc"], Health::Healthy { nodes: 5_000 });
}

#[test]
fn where_each_device_has_a_secret_of_its_own_one_is_read_every_three_seconds_and_the_delay_is_told() {
    let mut rounds = cluster(5_000, |number| u64::try_from(number).unwrap());
    let (asked, series) = played(&mut rounds, Span::mins(60), |_| Outcome::Good);
    assert_eq!(asked.len(), series);
    assert!((1_190..=1_201).contains(&series), "{series}");
    let different: BTreeSet<_> = asked.iter().map(|(_, key)| key.node.clone()).collect();
    assert_eq!(different.len(), series, "nobody is asked twice before all were asked once");
    assert!(rounds.behind(at(3_600)) > Span::mins(40), "{}", rounds.behind(at(3_600)));
}

#[test]
fn a_small_cluster_is_asked_on_time_whatever_its_secrets() {
    let mut rounds = cluster(100, |number| u64::try_from(number).unwrap());
    let (asked, _) = played(&mut rounds, Span::mins(60), |_| Outcome::Good);
    let mut last: BTreeMap<&Key, Tick> = BTreeMap::new();
    for (at, key) in &asked {
        let before = last.insert(key, *at).unwrap_or(Tick::START);
        assert!(at.since(before) <= TEN + Span::mins(1), "{key:?} waited for {}", at.since(before));
    }
    assert_eq!(last.len(), 100);
}

#[test]
fn no_more_than_so_many_are_under_way_and_none_is_asked_again_before_it_answers() {
    let mut rounds = cluster(500, |_| 7);
    let mut under_way = BTreeSet::new();
    for seconds in 0..1_200 {
        for key in rounds.begin(nobody, at(seconds)).lines.into_iter().flatten() {
            assert!(under_way.insert(key));
        }
    }
    assert_eq!(under_way.len(), TOGETHER);
    assert_eq!(rounds.wake(), None, "whoever answers makes room");
    let first = under_way.pop_first().unwrap();
    rounds.answered(&first, Outcome::Good, at(1_200));
    assert!(rounds.wake().is_some());
}

#[test]
fn the_outlets_of_one_pdu_are_asked_one_after_the_other() {
    let mut rounds = Rounds::default();
    for number in 0..12 {
        rounds.follow(&node(number), vec![Wired { address: 1, ..bmc(number, 7) }], Tick::START);
    }
    let begun = rounds.begin(nobody, at(600));
    assert_eq!(begun.lines.len(), 1, "one line");
    let first = begun.lines[0].len();
    assert!(first > 1, "and more than one in it");
    assert_eq!(rounds.begin(nobody, at(900)), Series::default(), "nobody else goes there meanwhile");
    for key in &begun.lines[0] {
        rounds.answered(key, Outcome::Good, at(901));
    }
    assert_eq!(rounds.begin(nobody, at(901)).lines.iter().flatten().count(), 12 - first);
}

#[test]
fn a_node_that_is_being_fenced_is_left_alone_and_asked_afterwards() {
    let mut rounds = cluster(1, |_| 7);
    let due = rounds.wake().unwrap();
    assert_eq!(rounds.begin(|_| true, due), Series::default());
    assert_eq!(rounds.wake(), Some(due + FENCED));
    assert_eq!(rounds.begin(nobody, due + FENCED).lines.len(), 1);
}

#[test]
fn a_device_that_fails_is_asked_sooner_and_told_of_once() {
    let mut rounds = cluster(1, |_| 7);
    let mut now = rounds.wake().unwrap();
    let mut told = Vec::new();
    let mut waits = Vec::new();
    let outcomes = [
        silent(),
        silent(),
        Outcome::NotAsked("away".to_owned()),
        Outcome::OffWhileReady,
        Outcome::Good,
        Outcome::Good,
    ];
    for outcome in outcomes {
        let key = rounds.begin(nobody, now).lines.remove(0).remove(0);
        told.push(rounds.answered(&key, outcome, now));
        let next = rounds.wake().unwrap();
        waits.push(next.since(now).as_millis() / 1_000);
        now = next;
    }
    let (fails, good) = (Some(Change::Fails), Some(Change::GoodAgain));
    assert_eq!(told, [fails.clone(), None, None, fails, good, None]);
    assert_eq!(waits[..4], [30, 60, 30, 120], "what was not asked has not failed once more");
    assert!(waits[4] >= 300 && waits[4] <= 900 && waits[5] == 600, "back at its own second: {waits:?}");
}

#[test]
fn a_login_that_is_refused_is_tried_once_more_soon_and_then_only_in_its_interval() {
    let mut rounds = cluster(1, |_| 7);
    let mut now = rounds.wake().unwrap();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let key = rounds.begin(nobody, now).lines.remove(0).remove(0);
        rounds.answered(&key, Outcome::Refused("401".to_owned()), now);
        let next = rounds.wake().unwrap();
        waits.push(next.since(now).as_millis() / 1_000);
        now = next;
    }
    assert_eq!(waits, [30, 600, 600, 600], "no account is locked by checks");
}

#[test]
fn a_device_that_is_told_something_else_is_another_one_and_is_asked_soon() {
    let mut rounds = cluster(1, |_| 7);
    let now = rounds.wake().unwrap();
    let key = rounds.begin(nobody, now).lines.remove(0).remove(0);
    let other = Wired { told: 99, ..bmc(0, 7) };
    rounds.follow(&node(0), vec![other.clone()], now);
    assert_eq!(rounds.begin(nobody, now + Span::mins(1)), Series::default(), "the old one has not answered");
    assert_eq!(rounds.answered(&key, silent(), now), None, "that was the old one");
    assert_eq!(rounds.health()["bmc"], Health::Pending { unasked: None });
    let soon = rounds.wake().unwrap();
    assert!(soon.since(now) <= FIRST, "{}", soon.since(now));
    rounds.follow(&node(0), vec![other], soon);
    assert_eq!(rounds.wake(), Some(soon), "the same once more changes nothing");
}

#[test]
fn what_is_gone_is_forgotten_with_all_that_was_known() {
    let mut rounds = cluster(2, |_| 7);
    played(&mut rounds, Span::mins(11), |key| if key.node == node(0) { silent() } else { Outcome::Good });
    assert!(matches!(rounds.health()["bmc"], Health::Failing { checked: 2, failing: 1, .. }));
    let standing = rounds.standing(&node(0));
    assert_eq!((standing["bmc"].last, standing["bmc"].good), (Some("NoAnswer"), None));
    rounds.lose(&node(0));
    assert!(!rounds.knows(&node(0)) && rounds.standing(&node(0)).is_empty());
    assert_eq!(rounds.health()["bmc"], Health::Healthy { nodes: 1 });
    rounds.follow(&node(1), Vec::new(), at(700));
    assert!(rounds.health().is_empty() && rounds.wake().is_none());
}

#[test]
fn of_two_devices_of_a_node_the_worse_one_counts() {
    let good = Standing { last: Some("Good"), good: Some(at(20)) };
    let fails = Standing { last: Some("NoAnswer"), good: Some(at(10)) };
    let never = Standing::default();
    assert_eq!(good.and(fails), Standing { last: Some("NoAnswer"), good: Some(at(10)) });
    assert_eq!(never.and(fails), Standing { last: Some("NoAnswer"), good: None });
    assert_eq!(good.and(never), never);
}
