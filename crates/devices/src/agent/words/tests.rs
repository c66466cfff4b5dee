use proptest::prelude::*;

use super::*;

fn heard(code: i32, stdout: &str, stderr: &str) -> Heard {
    let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
    Heard { end: End::Code(code), stdout, stderr, cut: false, deaf: false }
}

#[test]
fn a_status_is_its_words_and_its_exit_code() {
    assert_eq!(state(&heard(0, "Status: ON\n", "")), Ok(PowerState::On));
    assert_eq!(state(&heard(2, "Status: OFF\n", "")), Ok(PowerState::Off));
}

#[test]
fn words_and_exit_code_that_disagree_are_no_status() {
    for (code, stdout, stderr, cause) in [
        (2, "Status: ON\n", "", Cause::Contradiction),
        (0, "Status: OFF\n", "", Cause::Contradiction),
        (2, "Status: OFF\nStatus: ON\n", "", Cause::Contradiction),
        (2, "Status: OFFLINE\n", "", Cause::Contradiction),
        (2, "Status: off\n", "", Cause::Contradiction),
        (0, "", "", Cause::Wordless),
        (2, "", "", Cause::Wordless),
        (2, "OFF\n", "", Cause::Wordless),
        (2, "Status: OFF\n", "ERROR: Connection lost\n", Cause::Trouble),
        (0, "Status: ON\n", "Traceback (most recent call last):\n", Cause::Trouble),
        (1, "Status: OFF\n", "", Cause::Code(1)),
        (3, "Status: OFF\n", "", Cause::Code(3)),
    ] {
        assert_eq!(state(&heard(code, stdout, stderr)), Err(cause), "{code} {stdout:?} {stderr:?}");
    }
}

#[test]
fn an_agent_that_ended_in_another_way_says_nothing() {
    let off = heard(2, "Status: OFF\n", "");
    for (end, cause) in [(End::Signal(9), Cause::Killed(9)), (End::Deadline, Cause::Deadline), (End::Lost, Cause::Lost)]
    {
        assert_eq!(state(&Heard { end, ..off.clone() }), Err(cause));
        let off = heard(0, "Success: Powered OFF\n", "");
        assert_eq!(done(Command::Off, &Heard { end, ..off }), Err(cause));
    }
    assert_eq!(state(&Heard { cut: true, ..off.clone() }), Err(Cause::Flood));
    assert_eq!(state(&Heard { deaf: true, ..off }), Err(Cause::Deaf));
}

#[test]
fn a_command_is_sent_or_was_needless_or_nobody_knows() {
    let off = |stdout, stderr| done(Command::Off, &heard(0, stdout, stderr));
    assert_eq!(off("Success: Powered OFF\n", ""), Ok(Done::Sent));
    assert_eq!(off("", ""), Ok(Done::Sent));
    assert_eq!(off("Success: Already OFF\n", ""), Ok(Done::Already));
    for words in ["Success: Powered ON\n", "Success: Rebooted\n", "Success: Powered OFF\nSuccess: Powered ON\n"] {
        assert_eq!(off(words, ""), Err(Cause::Contradiction), "{words}");
    }
    assert_eq!(off("Success: Powered OFF\n", "2026-03-01 ERROR: something else\n"), Err(Cause::Trouble));
    assert_eq!(off("Success: Powered OFF\nerror: no\n", ""), Err(Cause::Trouble));
    assert_eq!(done(Command::On, &heard(0, "Success: Already ON\n", "")), Ok(Done::Already));
}

/// The words of the common library, as its agents wrote them.
#[test]
fn a_failure_is_told_by_its_words() {
    for (stderr, cause) in [
        ("2026-03-01 12:00:00,000 ERROR: Unable to connect/login to fencing device\n\n\n", Cause::Login),
        ("ERROR: Connection lost\n", Cause::ConnectionLost),
        ("ERROR: Connection timed out\n", Cause::Silent),
        ("ERROR: Failed: Timed out waiting to power OFF\n", Cause::NotDone),
        ("ERROR: Failed: Unable to obtain correct plug status or plug is not available\n", Cause::NoStatus),
        ("WARNING: Parse error: Ignoring unknown option 'x=1'\n", Cause::Misread),
        ("ERROR: Failed: You have to enter fence address\n\nERROR: Please use '-h' for usage\n", Cause::Settings),
        ("ERROR: Failed: Unrecognised action 'of'\n", Cause::Settings),
        ("ERROR: Ipmitool not found or not accessible\n", Cause::Settings),
        ("Traceback (most recent call last):\n  You have to look\n", Cause::Traceback),
        ("something new\n", Cause::Code(1)),
    ] {
        assert_eq!(done(Command::Off, &heard(1, "", stderr)), Err(cause), "{stderr}");
    }
}

#[test]
fn nothing_was_sent_is_said_of_settings_and_login_alone() {
    let certain: Vec<Cause> = CAUSES.iter().map(|(_, cause)| *cause).filter(|cause| cause.nothing_was_sent()).collect();
    assert!(certain.iter().all(|cause| matches!(cause, Cause::Settings | Cause::Login)));
    // Whatever may have come after something was sent is found first.
    let both = heard(1, "", "ERROR: Unable to connect/login to fencing device\nERROR: Connection lost\n");
    assert_eq!(done(Command::Off, &both), Err(Cause::ConnectionLost));
}

/// F2: an agent calls a plug that does not exist off.
#[test]
fn a_plug_has_to_be_in_the_list() {
    let list = |plug| listed(plug, &heard(0, "1,web\n2,db\n3,db\n4,3\n5,a, b\n", "")).unwrap();
    assert_eq!(list("1"), Listed::Yes);
    assert_eq!(list("web"), Listed::Yes);
    assert_eq!(list("a, b"), Listed::Yes);
    assert_eq!(list("db"), Listed::Twice);
    assert_eq!(list("3"), Listed::Yes, "a number is the plug's own");
    assert_eq!(list("9"), Listed::No(["1", "2", "3", "4", "5"].map(str::to_owned).to_vec()));
    assert_eq!(
        listed("1", &heard(0, "NOTICE: List option is not working on this device yet\n", "")),
        Ok(Listed::CannotTell)
    );
    assert_eq!(listed("1", &heard(1, "", "ERROR: Connection timed out\n")), Err(Cause::Silent));
}

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![
        (-1..4i32).prop_map(End::Code),
        any::<i32>().prop_map(End::Code),
        any::<i32>().prop_map(End::Signal),
        Just(End::Deadline),
        Just(End::Lost),
    ]
}

#[test]
fn words_that_are_run_together_are_not_the_very_words() {
    for text in ["Status:OFF", "Status:  OFF", "Status: OFF.", "x Status: OFF"] {
        let heard =
            Heard { end: End::Code(2), stdout: text.to_owned(), stderr: String::new(), cut: false, deaf: false };
        assert_ne!(state(&heard), Ok(PowerState::Off), "{text}");
    }
}

/// Texts in which the words that count are frequent.
fn any_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("Status: OFF".to_owned()),
        Just("Status:".to_owned()),
        Just("Status: ON".to_owned()),
        Just("OFF".to_owned()),
        Just("Success: Already OFF".to_owned()),
        Just("Success: Powered OFF".to_owned()),
        Just("ERROR: ".to_owned()),
        Just("\n".to_owned()),
        Just("\n".to_owned()),
        Just(" ".to_owned()),
        ".{0,8}",
    ];
    proptest::collection::vec(word, 0..6).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn off_is_never_said_without_the_very_words_and_the_code(
        end in any_end(), stdout in any_text(), stderr in any_text(), cut in any::<bool>(), deaf in any::<bool>(),
    ) {
        let heard = Heard { end, stdout, stderr, cut, deaf };
        let _any_answer = listed("3", &heard);
        if state(&heard) == Ok(PowerState::Off) {
            prop_assert_eq!(heard.end, End::Code(2));
            prop_assert!(heard.stdout.lines().any(|line| line.trim() == "Status: OFF"));
            prop_assert!(!heard.stdout.contains("Status: ON") && !heard.stderr.contains("ERROR") && !heard.cut);
        }
        if let Ok(done) = done(Command::Off, &heard) {
            prop_assert_eq!(heard.end, End::Code(0));
            prop_assert!(done == Done::Sent || heard.stdout.contains("Already OFF"));
        }
    }
}
