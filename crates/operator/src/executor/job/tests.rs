//! What a Job's end means, and when its looks were.

use std::collections::BTreeMap;

use palisade_api::template::Identity;

use super::*;

fn left(exit: i32, message: impl Into<String>) -> Left {
    Left { exit, message: message.into(), cut_short: false }
}

fn target(parameters: &[(&str, Value)], plug: &str) -> Target {
    Target {
        template: "pdu".to_owned(),
        mechanism: Mechanism::Agent("fence_apc_snmp".to_owned()),
        parameters: parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect::<BTreeMap<_, _>>(),
        plug: plug.into(),
        timeout: Span::secs(25),
        identity: Identity::WhenKnown,
    }
}

#[test]
fn an_exit_code_of_zero_without_a_report_is_unknown() {
    assert!(matches!(of_agent(&left(0, "")), Err(Failure::Unknown(_))));
    assert!(matches!(of_agent(&left(0, "Success: Powered OFF")), Err(Failure::Unknown(_))));
    let taken = Report::new(Verdict::Taken, "Success: Powered OFF").text();
    assert!(of_agent(&left(0, taken.clone())).is_ok_and(|said| said.contains("Powered OFF")));
    assert!(matches!(of_agent(&left(1, taken)), Err(Failure::Unknown(_))), "one of the two is wrong");
}

#[test]
fn what_the_pod_refused_was_not_sent() {
    let refused = Report::new(Verdict::Refused, "the parameter `plug` is missing").text();
    assert_eq!(of_agent(&left(1, refused)), Err(Failure::Refused("the parameter `plug` is missing".to_owned())));
    let unknown = Report::new(Verdict::Unknown, "no answer").text();
    assert_eq!(of_agent(&left(1, unknown)), Err(Failure::Unknown("no answer".to_owned())));
}

#[test]
fn of_a_users_pod_only_the_exit_code_counts() {
    assert!(of_users_pod(&left(0, "done")).is_ok());
    let failed = of_users_pod(&left(7, "no such volume\n"));
    assert_eq!(failed, Err(Failure::Unknown("its pod ended with exit code 7; no such volume".to_owned())));
}

#[test]
fn an_order_names_the_plug_once_and_no_secret() {
    let secret = Value::Secret { name: "pdu-login".to_owned(), key: "community".to_owned() };
    let target = target(
        &[("port", Value::Text("3".to_owned())), ("ip", Value::Text("192.0.2.9".to_owned())), ("community", secret)],
        "3",
    );
    let order = order("fence_apc_snmp", Task::On, &target);
    assert_eq!(order.plug.as_deref(), Some("3"));
    assert_eq!(order.parameters, BTreeMap::from([("ip".to_owned(), "192.0.2.9".to_owned())]));
    assert_eq!(order.secrets, BTreeMap::from([("community".to_owned(), "pdu-login/community".to_owned())]));
}

#[test]
fn what_a_job_saw_is_taken_to_be_as_old_as_it_can_be() {
    let look = Look { began_ms: 1_000, ended_ms: 1_200, state: Shown::Off };
    let unbound = Tick::START + Span::secs(10);
    let sample = sample(&look, unbound, WitnessWord::Silent);
    assert_eq!((sample.began, sample.ended), (unbound + Span::secs(1), unbound + Span::millis(1_200)));
    assert_eq!((sample.seen, sample.kubelet), (Seen::Off, WitnessWord::Silent));
}
