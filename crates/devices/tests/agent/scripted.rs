//! Agents that misbehave on purpose: each is a few lines of shell, with the interface of a fence agent.

use std::time::Duration;

use palisade_devices::agent::{Agent, Surroundings, Told};
use palisade_devices::{Command, Device, Failure, PowerState};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::{No, Place, Yes, gone, parameters, refused, search_path, unknown};

const METADATA: &str = r#"<?xml version="1.0" ?>
<resource-agent name="fence_scripted" shortdesc="What a test wants" >
<parameters>
 <parameter name="ip" unique="0" required="0"><content type="string"/></parameter>
 <parameter name="username" unique="0" required="0"><content type="string"/></parameter>
 <parameter name="password" unique="0" required="0"><content type="string"/></parameter>
 <parameter name="plug" unique="0" required="0"><content type="string"/></parameter>
</parameters>
<actions><action name="on"/><action name="off"/><action name="status"/>LIST</actions>
</resource-agent>
"#;

const CANARY: &str = "c4n4ry-of-the-p4ssword";

/// The agent of one test.
struct Scripted {
    place: Place,
}

impl Scripted {
    /// `body` finds the action in $action, everything that it was told in $input, and its own directory in $here.
    fn new(name: &str, body: &str) -> Self {
        Self::described(name, METADATA, body)
    }

    fn described(name: &str, metadata: &str, body: &str) -> Self {
        let place = Place::new(name);
        place.write("metadata", metadata);
        let here = place.path().display();
        place.program(
            "fence_scripted",
            &format!(
                "#!/bin/sh\nhere={here}\ninput=$(cat)\n\
                 case \"$input\" in *action=metadata*) cat $here/metadata; exit 0;; esac\n\
                 action=$(printf '%s\\n' \"$input\" | sed -n 's/^action=//p')\n\
                 echo $action >> $here/log\necho $$ > $here/pid\n{body}\n"
            ),
        );
        Self { place }
    }

    fn around(&self) -> Surroundings {
        let mut path = self.place.path().as_os_str().to_owned();
        path.push(":");
        path.push(search_path());
        Surroundings { path, authorities: Some("/etc/palisade/secrets/0/ca.crt".into()) }
    }

    async fn agent(&self, within: Duration) -> Agent {
        let around = self.around();
        let told = parameters(&[("ip", "192.0.2.7"), ("username", "fence")], &[("password", CANARY)]);
        Agent::find("fence_scripted", &told, &around, Instant::now() + within).await.unwrap()
    }

    async fn off(&self) -> Result<Told, Failure> {
        self.agent(LONG).await.tell("", Command::Off, &Yes).await
    }

    async fn state(&self) -> Result<PowerState, Failure> {
        self.agent(LONG).await.state("").await
    }

    /// Whether the process that was written down last still runs.
    fn lives(&self, file: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.place.read(file))).unwrap_or_default();
        // What has ended and is not yet fetched counts as ended.
        stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
    }
}

/// Long, for a machine that is busy.
const LONG: Duration = Duration::from_secs(30);

/// Short, for what is meant to last too long; and long enough for a shell to start on a machine that is busy.
const SHORT: Duration = Duration::from_secs(3);

#[tokio::test]
async fn what_an_agent_says_in_the_right_words_counts() {
    let body = "case $action in off) echo 'Success: Powered OFF';; on) echo 'Success: Already ON';; \
                status) echo 'Status: OFF'; exit 2;; esac";
    let scripted = Scripted::new("words", body);
    assert_eq!(scripted.off().await, Ok(Told { sent: true, said: "Success: Powered OFF".to_owned() }));
    let on = scripted.agent(LONG).await.tell("", Command::On, &Yes).await;
    assert_eq!(on, Ok(Told { sent: false, said: "Success: Already ON".to_owned() }));
    assert_eq!(scripted.state().await, Ok(PowerState::Off));
    assert_eq!(scripted.place.read("log"), "off\non\nstatus");
}

#[tokio::test]
async fn what_an_agent_says_in_other_words_does_not() {
    for (name, body, said) in [
        ("trouble", "echo 'Success: Powered OFF'; echo 'ERROR: no answer' >&2", "told of trouble"),
        ("traceback", "echo 'Traceback (most recent call last):' >&2", "told of trouble"),
        ("late-failure", "echo 'Success: Powered OFF'; exit 1", "ended with code 1"),
        ("odd-code", "echo 'Success: Powered OFF'; exit 7", "ended with code 7"),
        ("other-thing", "echo 'Success: Powered ON'", "do not go together"),
        ("killed", "echo 'Success: Powered OFF'; kill -9 $$", "killed by signal 9"),
        ("terminated", "kill -15 $$", "killed by signal 15"),
    ] {
        let why = unknown(Scripted::new(name, body).off().await);
        assert!(why.contains(said), "{name}: {why}");
    }
    for (name, body, said) in [
        ("on-and-2", "echo 'Status: ON'; exit 2", "do not go together"),
        ("off-and-0", "echo 'Status: OFF'", "do not go together"),
        ("silent-2", "exit 2", "did not say how the device stands"),
        ("off-and-error", "echo 'Status: OFF'; echo 'ERROR: half an answer' >&2; exit 2", "told of trouble"),
        ("off-and-on", "echo 'Status: OFF'; echo 'Status: ON'; exit 2", "do not go together"),
    ] {
        let why = unknown(Scripted::new(name, body).state().await);
        assert!(why.contains(said), "{name}: {why}");
    }
}

#[tokio::test]
async fn what_an_agent_refuses_before_it_begins_is_refused() {
    let body = "echo \"ERROR: Failed: You have to enter fence address\" >&2; exit 1";
    assert!(refused(Scripted::new("settings", body).off().await).contains("put them right"));
    let body = "echo 'ERROR: Unable to connect/login to fencing device' >&2; exit 1";
    assert!(refused(Scripted::new("login", body).off().await).contains("could not log in"));
}

#[tokio::test]
async fn an_agent_that_hangs_is_killed_with_everything_that_it_started() {
    let scripted = Scripted::new("hangs", "sleep 600 & echo $! > $here/child; sleep 600");
    let agent = scripted.agent(SHORT).await;
    let began = Instant::now();
    let why = unknown(agent.tell("", Command::Off, &Yes).await);
    assert!(why.contains("time was over"), "{why}");
    assert!(began.elapsed() < SHORT + Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(gone(|| !scripted.lives("pid") && !scripted.lives("child")).await, "something was left");
}

#[tokio::test]
async fn an_agent_that_nobody_waits_for_any_more_is_killed() {
    let scripted = Scripted::new("dropped", "sleep 600 & echo $! > $here/child; sleep 600");
    let agent = scripted.agent(LONG).await;
    let told = tokio::time::timeout(SHORT, agent.tell("", Command::Off, &Yes)).await;
    assert!(told.is_err(), "{told:?}");
    assert_eq!(scripted.place.read("log"), "off");
    assert!(gone(|| !scripted.lives("pid") && !scripted.lives("child")).await, "something was left");
}

/// As an agent does that gives up on ipmitool: the command is still under way.
#[tokio::test]
async fn a_child_that_would_act_later_does_not() {
    let scripted = Scripted::new("late", "(sleep 2; echo on > $here/late) & echo 'Success: Powered OFF'");
    let agent = scripted.agent(LONG).await;
    let began = Instant::now();
    assert!(agent.tell("", Command::Off, &Yes).await.is_ok());
    assert!(began.elapsed() < Duration::from_secs(2), "it was waited for: {:?}", began.elapsed());
    sleep(Duration::from_secs(3)).await;
    assert_eq!(scripted.place.read("late"), "");
}

#[tokio::test]
async fn a_stream_that_somebody_keeps_open_is_not_waited_for() {
    let body = "setsid sleep 20 & echo $! > $here/child; echo 'Status: ON'";
    let scripted = Scripted::new("open", body);
    let agent = scripted.agent(LONG).await;
    let began = Instant::now();
    assert_eq!(agent.state("").await, Ok(PowerState::On));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // It is out of the group: a pod's end would take it along.
    let left = scripted.place.read("child").parse().ok().and_then(Pid::from_raw).unwrap();
    assert!(scripted.lives("child"));
    kill_process(left, Signal::KILL).unwrap();
}

#[tokio::test]
async fn an_agent_that_writes_without_end_says_nothing() {
    let scripted = Scripted::new("flood", "echo 'Status: OFF'; yes | head -c 3000000; exit 2");
    assert!(unknown(scripted.state().await).contains("wrote without end"));
    let scripted = Scripted::new("endless", "echo 'Status: OFF'; exec yes");
    let why = unknown(scripted.agent(SHORT).await.state("").await);
    assert!(why.contains("time was over"), "{why}");
    assert!(why.len() < 2_000, "{}", why.len());
    assert!(!scripted.lives("pid"));
}

#[tokio::test]
async fn an_agent_that_closes_its_input_at_once_comes_to_an_end() {
    let place = Place::new("deaf");
    place.write("metadata", METADATA);
    let here = place.path().display();
    // It describes itself when it is asked for the first time.
    place.program(
        "fence_scripted",
        &format!(
            "#!/bin/sh\nexec 0<&-\nif [ ! -e {here}/asked ]; then touch {here}/asked; exec cat {here}/metadata; fi\n\
             echo 'Status: OFF'\nsleep 1\nexit 2\n"
        ),
    );
    let scripted = Scripted { place };
    let state = scripted.state().await;
    assert!(matches!(state, Ok(PowerState::Off) | Err(Failure::Unknown(_))), "{state:?}");
}

/// I7.
#[tokio::test]
async fn an_agent_is_told_by_its_input_and_by_nothing_else() {
    let body = "echo $# > $here/argc; env > $here/env; printf '%s' \"$input\" > $here/input; \
                tr '\\0' ' ' < /proc/$$/cmdline > $here/cmdline; echo 'Success: Powered OFF'";
    let scripted = Scripted::new("input", body);
    scripted.off().await.unwrap();
    let place = &scripted.place;
    assert_eq!(place.read("argc"), "0");
    assert_eq!(place.read("input"), format!("action=off\nip=192.0.2.7\npassword={CANARY}\nusername=fence"));
    assert!(!place.read("cmdline").contains(CANARY));
    let known = [
        "PATH",
        "LANG",
        "LC_ALL",
        "HOME",
        "PYTHONWARNINGS",
        "PYTHONDONTWRITEBYTECODE",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_FILE", // A shell adds these by itself.
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    ];
    for line in place.read("env").lines() {
        let name = line.split('=').next().unwrap();
        assert!(known.contains(&name), "{line}");
        assert!(!line.contains(CANARY), "{line}");
    }
}

/// I7.
#[tokio::test]
async fn a_password_that_an_agent_prints_is_not_passed_on() {
    let body = "echo \"ERROR: cannot log in with $input\" >&2; printf '%s' \"$input\" | base64 >&2; \
                printf 'fence:%s' \"$(printf '%s\\n' \"$input\" | sed -n 's/^password=//p')\" | base64 -w0 >&2; exit 1";
    let scripted = Scripted::new("prints", body);
    let why = unknown(scripted.off().await);
    assert!(why.contains("ip=192.0.2.7") && why.contains("password=***"), "{why}");
    assert!(!why.contains(CANARY) && !why.contains("ZmVuY2U6YzRuNHJ5"), "{why}");
}

#[tokio::test]
async fn nothing_is_run_without_permission() {
    let scripted = Scripted::new("forbidden", "echo 'Success: Powered OFF'");
    let why = refused(scripted.agent(LONG).await.tell("", Command::Off, &No).await);
    assert_eq!((why.as_str(), scripted.place.read("log").as_str()), ("the fence was taken back", ""));
}

/// F5, in small: the device is in the middle of a power cycle.
#[tokio::test]
async fn off_is_asked_for_again_until_it_is_sent() {
    let body =
        "if [ $(grep -c off $here/log) -lt 2 ]; then echo 'Success: Already OFF'; else echo 'Success: Powered OFF'; fi";
    let scripted = Scripted::new("again", body);
    assert!(scripted.off().await.unwrap().sent);
    assert_eq!(scripted.place.read("log"), "off\noff");
}

#[tokio::test]
async fn a_machine_without_power_says_off_for_ever_and_that_counts() {
    let scripted = Scripted::new("powerless", "echo 'Success: Already OFF'");
    let agent = scripted.agent(LONG).await;
    let began = Instant::now();
    let told = agent.tell("", Command::Off, &Yes).await.unwrap();
    assert!(!told.sent && told.said.contains("nothing had to be sent"), "{told:?}");
    assert!(began.elapsed() >= Duration::from_secs(5));
    assert_eq!(scripted.place.read("log"), "off\noff\noff", "off, and never on");
}

#[tokio::test]
async fn off_that_was_said_for_too_short_a_time_does_not_count() {
    let scripted = Scripted::new("hasty", "echo 'Success: Already OFF'");
    let why = refused(scripted.agent(SHORT).await.tell("", Command::Off, &Yes).await);
    assert!(why.contains("power cycle"), "{why}");
}

/// F2, in small.
#[tokio::test]
async fn a_plug_that_the_device_does_not_list_is_neither_switched_nor_read() {
    let metadata = METADATA.replace("LIST", "<action name=\"list\"/>");
    let body = "case $action in list) echo '1,web'; echo '2,db';; off) echo 'Success: Powered OFF';; \
                status) echo 'Status: OFF'; exit 2;; esac";
    let scripted = Scripted::described("listed", &metadata, body);
    let agent = scripted.agent(LONG).await;
    for why in [refused(agent.tell("9", Command::Off, &Yes).await), refused(agent.state("9").await)] {
        assert!(why.contains("no plug \"9\"; it has 1, 2"), "{why}");
    }
    assert_eq!(scripted.place.read("log"), "list\nlist");
    assert_eq!(agent.state("db").await, Ok(PowerState::Off));
    assert!(agent.tell("db", Command::Off, &Yes).await.unwrap().sent);
    assert_eq!(scripted.place.read("log"), "list\nlist\nlist\nstatus\noff", "a list that was read once is enough");
}

#[tokio::test]
async fn an_agent_that_does_not_describe_itself_is_not_used() {
    let scripted = Scripted::described("stranger", "Usage: call me\n", "echo 'Success: Powered OFF'");
    let around = scripted.around();
    let nothing = parameters(&[], &[]);
    let found = |name| Agent::find(name, &nothing, &around, Instant::now() + LONG);
    let why = found("fence_scripted").await.err().unwrap().to_string();
    assert!(why.contains("fence_scripted: its metadata is no XML") && why.starts_with("refused"), "{why}");
    assert!(found("fence_nobody").await.err().unwrap().to_string().contains("not in this image"));
}
