//! `palisade act` as a pod runs it: the built binary, an order, secrets, an agent that the test wrote, and the report.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use palisade_devices::act::{Order, Report, Shown, Task, Verdict};
use rustix::process::{Pid, Signal, kill_process};

const CANARY: &str = "c4n4ry-of-the-p4ssword";

const METADATA: &str = r#"<?xml version="1.0" ?>
<resource-agent name="fence_scripted" shortdesc="What a test wants" >
<parameters>
 <parameter name="ip" unique="0" required="1"><content type="string"/></parameter>
 <parameter name="password" unique="0" required="0"><content type="string"/></parameter>
</parameters>
<actions><action name="on"/><action name="off"/><action name="status"/></actions>
</resource-agent>
"#;

/// An agent whose machine is a file.
const HONEST: &str = "case $action in\n\
    off) sleep 1; echo off > $here/power; echo 'Success: Powered OFF';;\n\
    on) echo on > $here/power; echo 'Success: Powered ON';;\n\
    status) if [ $(cat $here/power) = on ]; then echo 'Status: ON'; else echo 'Status: OFF'; exit 2; fi;;\n\
    esac";

/// A pod, as far as a test needs one.
struct Pod {
    at: PathBuf,
}

impl Pod {
    fn new(name: &str, body: &str) -> Self {
        let at = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("act-{name}"));
        let _ = fs::remove_dir_all(&at);
        fs::create_dir_all(at.join("secrets/0")).unwrap();
        let pod = Self { at };
        pod.write("secrets/0/password", &format!("{CANARY}\n"));
        pod.write("metadata", METADATA);
        pod.write("power", "on");
        let here = pod.at.display();
        pod.program(&format!(
            "#!/bin/sh\nhere={here}\ninput=$(cat)\n\
             case \"$input\" in *action=metadata*) cat $here/metadata; exit 0;; esac\n\
             action=$(printf '%s\\n' \"$input\" | sed -n 's/^action=//p')\n\
             case \"$input\" in *'password={CANARY}'*) ;; *) exit 9;; esac\n\
             echo $action >> $here/log\necho $$ > $here/pid\n{body}\n"
        ));
        pod
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.at.join(file), text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.at.join(file)).unwrap_or_default().trim().to_owned()
    }

    /// Written by somebody else: a file that we have open for writing cannot be run, not even for a sibling's sake.
    fn program(&self, text: &str) {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(self.at.join("fence_scripted"))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(shell.wait().unwrap().success());
    }

    fn order(task: Task, seconds: u64) -> Order {
        let mut order = Order::new("fence_scripted", task, Duration::from_secs(seconds));
        order.parameters.insert("ip".to_owned(), "192.0.2.7".to_owned());
        order.secrets.insert("password".to_owned(), "0/password".to_owned());
        order
    }

    fn start(&self, order: &str) -> Child {
        self.write("order", order);
        let mut path = self.at.as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        Command::new(env!("CARGO_BIN_EXE_palisade"))
            .arg("act")
            .arg("--order")
            .arg(self.at.join("order"))
            .arg("--secrets")
            .arg(self.at.join("secrets"))
            .arg("--report")
            .arg(self.at.join("report"))
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs it to its end: the report, the exit code, and everything that was said, in which no secret is.
    fn run(&self, order: &str) -> (Report, Option<i32>) {
        self.end(self.start(order))
    }

    fn end(&self, child: Child) -> (Report, Option<i32>) {
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = self.read("report");
        for said in
            [&text, &String::from_utf8_lossy(&stdout).into_owned(), &String::from_utf8_lossy(&stderr).into_owned()]
        {
            assert!(!said.contains(CANARY), "{said}");
        }
        let report = Report::read(&text).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&stderr)));
        (report, status.code())
    }

    fn log(&self) -> Vec<String> {
        self.read("log").lines().map(str::to_owned).collect()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.at);
    }
}

fn shown(report: &Report) -> Vec<Shown> {
    report.looks.iter().map(|look| look.state).collect()
}

#[expect(clippy::disallowed_methods, reason = "a real process runs in real time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// What every process on the machine shows of itself, in which no secret is.
fn scan(agent: &AtomicBool) {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let around = fs::read(entry.path().join("environ")).unwrap_or_default();
        let (line, around) = (String::from_utf8_lossy(&line), String::from_utf8_lossy(&around));
        assert!(!line.contains(CANARY) && !around.contains(CANARY), "{line}");
        if line.contains("fence_scripted") {
            agent.store(true, Ordering::SeqCst);
        }
    }
}

/// I7.
#[test]
fn off_is_sent_seen_and_reported_and_no_secret_shows() {
    let pod = Pod::new("off", HONEST);
    let mut child = pod.start(&Pod::order(Task::Off { only_if_on: true }, 30).text());
    let agent = AtomicBool::new(false);
    while child.try_wait().unwrap().is_none() {
        scan(&agent);
        pause(Duration::from_millis(10));
    }
    assert!(agent.load(Ordering::SeqCst), "the agent was never seen");
    let (report, code) = pod.end(child);
    assert_eq!((report.verdict, code, report.sent.as_deref()), (Verdict::Taken, Some(0), Some("off")));
    assert_eq!(shown(&report), [Shown::On, Shown::Off]);
    assert!(report.looks[1].began_ms >= report.looks[0].ended_ms && report.took_ms >= 1_000, "{report:?}");
    assert_eq!((pod.read("power").as_str(), pod.log().join(" ").as_str()), ("off", "status off status"));
}

/// An agent that only says yes.
#[test]
fn what_the_agent_says_of_off_is_reported_beside_what_the_device_says() {
    let liar = HONEST.replace("echo off > $here/power;", "");
    let pod = Pod::new("liar", &liar);
    let (report, code) = pod.run(&Pod::order(Task::Off { only_if_on: false }, 8).text());
    assert_eq!((report.verdict, code), (Verdict::Taken, Some(0)));
    assert!(!report.looks.is_empty() && shown(&report).iter().all(|state| *state == Shown::On), "{report:?}");
}

#[test]
fn a_machine_that_is_not_on_is_not_switched_off_where_the_order_forbids_it() {
    let pod = Pod::new("asleep", HONEST);
    pod.write("power", "off");
    let (report, code) = pod.run(&Pod::order(Task::Off { only_if_on: true }, 30).text());
    assert_eq!((report.verdict, code, report.sent), (Verdict::Refused, Some(1), None));
    assert_eq!(pod.log(), ["status"]);
}

#[test]
fn on_is_sent() {
    let pod = Pod::new("on", HONEST);
    pod.write("power", "off");
    let (report, code) = pod.run(&Pod::order(Task::On, 30).text());
    assert_eq!((report.verdict, code, report.sent.as_deref()), (Verdict::Taken, Some(0), Some("on")));
    assert_eq!((pod.read("power").as_str(), pod.log()), ("on", vec!["on".to_owned()]));
}

#[test]
fn a_series_of_looks_goes_on_until_it_is_steady() {
    let pod = Pod::new("steady", HONEST);
    pod.write("power", "off");
    let (report, code) = pod.run(&Pod::order(Task::Look { steady_ms: 1_200 }, 60).text());
    assert_eq!((report.verdict, code, &report.sent), (Verdict::Taken, Some(0), &None));
    let (first, last) = (report.looks.first().unwrap(), report.looks.last().unwrap());
    assert!(shown(&report).iter().all(|state| *state == Shown::Off), "{report:?}");
    assert!(report.looks.len() > 2 && last.began_ms - first.ended_ms >= 1_200, "{report:?}");
    assert!(pod.log().iter().all(|action| action == "status"));
}

#[test]
fn a_series_of_looks_ends_with_the_first_that_says_something_else() {
    let flap = "echo 'Status: OFF'; [ $(grep -c status $here/log) -lt 3 ] && exit 2; exit 0";
    let pod = Pod::new("flap", flap);
    let (report, code) = pod.run(&Pod::order(Task::Look { steady_ms: 60_000 }, 60).text());
    assert_eq!((report.verdict, code), (Verdict::Unknown, Some(1)));
    assert_eq!(shown(&report), [Shown::Off, Shown::Off, Shown::Unknown]);
    let pod = Pod::new("awake", HONEST);
    let (report, code) = pod.run(&Pod::order(Task::Look { steady_ms: 60_000 }, 60).text());
    assert_eq!((report.verdict, code, shown(&report)), (Verdict::Taken, Some(0), vec![Shown::On]));
}

#[test]
fn whoever_wants_to_know_it_once_has_it_looked_at_once() {
    for (power, shows) in [("off", Shown::Off), ("on", Shown::On)] {
        let pod = Pod::new(&format!("once-{power}"), HONEST);
        pod.write("power", power);
        let (report, code) = pod.run(&Pod::order(Task::Look { steady_ms: 0 }, 60).text());
        assert_eq!((report.verdict, code, shown(&report)), (Verdict::Taken, Some(0), vec![shows]));
        assert_eq!(pod.log(), ["status"]);
    }
}

#[test]
fn a_look_at_a_plug_that_the_device_does_not_have_is_refused() {
    let pod = Pod::new(
        "no-plug",
        "case $action in list) echo '1,left'; echo '2,right';; status) echo 'Status: OFF'; exit 2;; esac",
    );
    let plug = r#"<parameter name="plug" unique="0" required="1"><content type="string"/></parameter></parameters>"#;
    let known = METADATA.replace("</parameters>", plug).replace("<actions>", r#"<actions><action name="list"/>"#);
    pod.write("metadata", &known);
    let order = Order { plug: Some("9".to_owned()), ..Pod::order(Task::Look { steady_ms: 0 }, 60) };
    let (report, code) = pod.run(&order.text());
    assert_eq!((report.verdict, code), (Verdict::Refused, Some(1)), "{report:?}");
    assert!(report.said.contains("no plug"), "{report:?}");
}

#[test]
fn an_agent_that_hangs_is_reported_in_time() {
    let pod = Pod::new("hangs", "sleep 600");
    let (report, code) = pod.run(&Pod::order(Task::Off { only_if_on: false }, 4).text());
    assert_eq!((report.verdict, code, report.sent.as_deref()), (Verdict::Unknown, Some(1), Some("off")));
    assert!(report.took_ms < 7_000, "{report:?}");
    // It was killed; a busy machine may take a moment to end it.
    for _look in 0..100 {
        if !lives(&pod) {
            return;
        }
        pause(Duration::from_millis(50));
    }
    panic!("the agent was left");
}

/// As when the pod is deleted.
#[test]
fn a_pod_that_is_ended_kills_its_agent_and_says_unknown() {
    let pod = Pod::new("ended", "sleep 600");
    let child = pod.start(&Pod::order(Task::Off { only_if_on: false }, 600).text());
    while pod.read("pid").is_empty() {
        pause(Duration::from_millis(20));
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (report, code) = pod.end(child);
    assert_eq!((report.verdict, code, report.sent.as_deref()), (Verdict::Unknown, Some(1), Some("off")));
    assert!(report.said.contains("the pod was ended"), "{report:?}");
    // It was killed; a busy machine may take a moment to end it.
    for _look in 0..100 {
        if !lives(&pod) {
            return;
        }
        pause(Duration::from_millis(50));
    }
    panic!("the agent was left");
}

fn lives(pod: &Pod) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pod.read("pid"))).unwrap_or_default();
    // What has ended and is not yet fetched counts as ended.
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
}

#[test]
fn an_order_that_cannot_be_followed_is_refused_and_nothing_is_run() {
    let off = Task::Off { only_if_on: false };
    let mut outside = Pod::order(off, 30);
    outside.secrets.insert("password".to_owned(), "../order".to_owned());
    let mut missing = Pod::order(off, 30);
    missing.secrets.insert("password".to_owned(), "0/none".to_owned());
    let mut unknown = Pod::order(off, 30);
    unknown.parameters.insert("ip_addr".to_owned(), "192.0.2.8".to_owned());
    let mut plug = Pod::order(off, 30);
    plug.plug = Some("3".to_owned());
    let mut stranger = Pod::order(off, 30);
    stranger.agent = "sh".to_owned();
    for (order, said) in [
        ("off, please".to_owned(), "the order cannot be read"),
        (outside.text(), "no file below"),
        (missing.text(), "the secret `password` cannot be read"),
        (unknown.text(), "knows no parameter `ip_addr`"),
        (plug.text(), "has no plugs"),
        (stranger.text(), "is no name of a fence agent"),
    ] {
        let pod = Pod::new("refused", HONEST);
        let (report, code) = pod.run(&order);
        assert_eq!((report.verdict, code, report.sent), (Verdict::Refused, Some(1), None));
        assert!(report.said.contains(said), "{}", report.said);
        assert_eq!((pod.log(), pod.read("power").as_str()), (vec![], "on"));
    }
}
