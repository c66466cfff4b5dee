//! IPMI / codes: what a BMC says by a number, in words for whoever has to put it right.
//!
//! Promise (I6): only a code that says that nothing was done is a refusal; every other one, and those that nobody knows, leave
//! open what was done.

use super::login::Login;
use crate::Failure;

/// Completion codes that mean more than their words.
pub(super) const DONE: u8 = 0x00;
pub(super) const BUSY: u8 = 0xc0;
pub(super) const UNKNOWN_COMMAND: u8 = 0xc1;
pub(super) const NOT_IN_THIS_STATE: u8 = 0xd5;

/// Why a command was not done, or may not have been.
pub(super) fn not_done(code: u8, asked: &str) -> Failure {
    let refused = |why: &str| Failure::Refused(format!("{asked}: {why} (completion code {code:#04x})"));
    let unknown = |why: &str| Failure::Unknown(format!("{asked}: {why} (completion code {code:#04x})"));
    match code {
        0xc1 | 0xc2 => refused("the BMC does not know this command; its firmware may be too old"),
        0xc6..=0xc9 | 0xcb..=0xcd => {
            refused("the BMC does not take the command as the specification has it; renew its firmware")
        }
        0xd4 => refused(
            "this user may not do that; give it the privilege OPERATOR for IPMI over LAN at the BMC, and see that the channel \
             allows it",
        ),
        NOT_IN_THIS_STATE => refused("the BMC cannot do that in the state that the machine is in; look at its console"),
        0xd6 => {
            refused("the BMC has this command switched off; allow it in its settings (firmware firewall, lockdown)")
        }
        BUSY => unknown("the BMC is busy, and stayed so"),
        0xc3 => unknown("the BMC ran out of time while it did it"),
        0xcf => unknown("the BMC took it for one that it had before"),
        0xce | 0xd0..=0xd2 => {
            unknown("the BMC is starting or updating itself, and cannot say what it did; try again in some minutes")
        }
        _ => unknown("the BMC does not say what is wrong; look into its event log"),
    }
}

/// The statuses of a handshake that say that a cipher suite is not there.
pub(super) fn is_about_the_suite(status: u8) -> bool {
    matches!(status, 0x04..=0x07 | 0x10 | 0x11)
}

/// Why a BMC does not let us in. Nothing was done yet, whatever it is.
pub(super) fn not_let_in(status: u8, login: &Login, step: &str) -> Failure {
    let (user, privilege) = (&login.username, login.privilege);
    let why = match status {
        0x01 | 0x0b => {
            "the BMC has no session left; wait a minute until old ones end, or close them there".to_owned()
        }
        0x02 | 0x08 => "the BMC has forgotten the session while we logged in".to_owned(),
        0x09 | 0x0a => format!(
            "the user {user:?} may not log in as {privilege}; give it that privilege for IPMI over LAN at the BMC, and see that \
             the channel allows it"
        ),
        0x0c | 0x0d => format!(
            "the BMC knows no user {user:?} that may use IPMI over LAN; put `username` right, or allow it there, and look \
             whether the account is locked"
        ),
        0x0f => format!("wrong password: the BMC does not take our proof for the user {user:?}; put the Secret right"),
        status if is_about_the_suite(status) => {
            "the BMC has none of the cipher suites that we may use; switch 17 or 3 on there, and allow it for this privilege"
                .to_owned()
        }
        _ => "the BMC does not let us in, and does not say why; look into its event log".to_owned(),
    };
    Failure::Refused(format!("{why} ({step}, status {status:#04x})"))
}
