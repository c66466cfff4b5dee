//! Agent / fuzz: what agents and their pods leave behind, as it comes in at each place. See [`crate::fuzz`].
#![expect(clippy::missing_panics_doc, reason = "a panic is what a fuzzer looks for")]

use super::Metadata;
use super::words::{self, Done, End, Heard, Listed};
use crate::act::{Order, Report};
use crate::{Command, PowerState};

/// How a run ended in the first byte, and what it wrote: on stdout up to a NUL, on stderr from there on.
pub fn agent_words(bytes: &[u8]) {
    let Some((end, wrote)) = bytes.split_first() else { return };
    let end = match end {
        code @ 0..=9 => End::Code(i32::from(*code)),
        10 => End::Deadline,
        11 => End::Lost,
        other => End::Signal(i32::from(*other)),
    };
    let (stdout, stderr) = wrote.split_at(wrote.iter().position(|byte| *byte == 0).unwrap_or(wrote.len()));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let heard = Heard { end, stdout: text(stdout), stderr: text(stderr), cut: false, deaf: false };
    match words::state(&heard) {
        Ok(PowerState::Off) => {
            assert_eq!(end, End::Code(2));
            assert!(heard.stdout.contains("OFF"), "off is said in words");
        }
        Ok(PowerState::On) => assert_eq!(end, End::Code(0)),
        Ok(PowerState::Unclear(_)) | Err(_) => {}
    }
    for command in [Command::Off, Command::On] {
        match words::done(command, &heard) {
            Ok(Done::Sent | Done::Already) => assert_eq!(end, End::Code(0)),
            Err(why) => assert!(!why.nothing_was_sent() || matches!(end, End::Code(code) if code != 0), "{why}"),
        }
    }
    if let Ok(Listed::Yes) = words::listed("7", &heard) {
        assert!(heard.stdout.contains('7'));
    }
    // Whoever wrote more than is kept, or did not read what it was told, has said nothing.
    let cut = Heard { cut: true, ..heard.clone() };
    let deaf = Heard { deaf: true, ..heard };
    for heard in [cut, deaf] {
        assert!(words::state(&heard).is_err() && words::done(Command::Off, &heard).is_err());
    }
}

/// What an agent says of itself.
pub fn agent_metadata(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(metadata) = Metadata::read(text) {
        assert!(["off", "on", "status"].into_iter().all(|action| metadata.can(action)));
        assert!(metadata.parameters().all(|known| metadata.parameter(&known.name).is_some()));
    }
}

/// What a pod was told, and what it leaves behind. Whoever can write into a termination message can write anything.
pub fn agent_report(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(report) = Report::read(text) {
        let again = report.text();
        assert!(again.len() <= 4096, "it fits into a termination message");
        assert!(Report::read(&again).is_ok_and(|again| again.verdict == report.verdict));
    }
    if let Ok(order) = Order::read(text) {
        assert!(Order::read(&order.text()).is_ok());
    }
}
