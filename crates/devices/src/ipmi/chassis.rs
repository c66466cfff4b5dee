//! IPMI / chassis: the power of the one machine that a BMC is in.
//!
//! Promise (I6): off is what the BMC says of the power now; an answer that is too short says nothing.
//! Never: power cycle, reset, or a shutdown by the operating system: nobody would see the machine off, or it would not go.
//!
//! A BMC knows of power and of nothing else: a machine that has gone off and one that has gone to hibernation are both without.
//! Whether a machine can hibernate, the template says.

use super::codes::{self, DONE, NOT_IN_THIS_STATE};
use super::message::{CHASSIS, Request};
use super::session::Session;
use crate::{Command, Failure, Permit, PowerState};

const GET_CHASSIS_STATUS: u8 = 0x01;
const CHASSIS_CONTROL: u8 = 0x02;

/// The bit of the power state that tells that the machine has power.
const POWER_IS_ON: u8 = 0x01;

/// Reads whether the machine has power.
pub(super) async fn state(session: &mut Session) -> Result<PowerState, Failure> {
    let asked = "the state of the power";
    let request = Request { function: CHASSIS, command: GET_CHASSIS_STATUS, data: &[] };
    let reply = session.ask(&request, asked, None).await?.reply;
    match (reply.code, reply.data.as_slice()) {
        (DONE, [power, _last_event, _misc, ..]) if power & POWER_IS_ON != 0 => Ok(PowerState::On),
        (DONE, [_power, _last_event, _misc, ..]) => Ok(PowerState::Off),
        (DONE, short) => Err(Failure::Unknown(format!("{asked}: the answer has {} bytes instead of 3", short.len()))),
        (code, _) => Err(codes::not_done(code, asked)),
    }
}

/// Switches it.
pub(super) async fn control(session: &mut Session, command: Command, permit: &dyn Permit) -> Result<(), Failure> {
    let (data, asked) = match command {
        Command::Off => (&[0x00], "power off"),
        Command::On => (&[0x01], "power on"),
    };
    let request = Request { function: CHASSIS, command: CHASSIS_CONTROL, data };
    let answer = session.ask(&request, asked, Some(permit)).await?;
    match answer.reply.code {
        DONE => Ok(()),
        // Some BMCs refuse to switch off what is off. A machine without power would then never be fenced.
        NOT_IN_THIS_STATE if is_so_already(session, command).await => Ok(()),
        code => Err(match codes::not_done(code, asked) {
            // One of them was refused; another one, to which nobody heard an answer, may have been done.
            Failure::Refused(why) if answer.unanswered > 0 => Failure::Unknown(format!(
                "{why}; it was sent {} times before that, and what came of it nobody knows",
                answer.unanswered
            )),
            why => why,
        }),
    }
}

async fn is_so_already(session: &mut Session, command: Command) -> bool {
    let wanted = match command {
        Command::Off => PowerState::Off,
        Command::On => PowerState::On,
    };
    state(session).await == Ok(wanted)
}
