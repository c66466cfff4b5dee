//! Agent / forbidden: parameters that nobody may set, whatever the agent knows.
//!
//! Promise: no parameter runs a program, opens a file, keeps the agent from saying what happened, or decides in our place what is
//! done and what counts as off. The schema of FenceTemplates refuses most of them already; whoever can write a pod's order is
//! not always whoever passed that schema, so they are refused here again.

use std::fmt;

use super::metadata::plain;

/// Why nobody may set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// It names a program, or is run as one.
    RunsCode,
    /// It names a file.
    OpensFile,
    /// It says what is done, to whom or when.
    Decides,
    /// It has something called off that is not.
    CallsItOff,
    /// It changes what the agent says, or has it say something else.
    Speech,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunsCode => "it would have a program of somebody's choice run",
            Self::OpensFile => "it would have a file of somebody's choice opened",
            Self::Decides => "what is done, to which plug and until when, is said by Palisade",
            Self::CallsItOff => "with it, off is said of a machine that may be on",
            Self::Speech => "what the agent says is read by Palisade, and has to be as it always is",
        })
    }
}

/// Endings of names.
const ENDINGS: [(&str, Forbidden); 7] = [
    ("path", Forbidden::RunsCode),
    ("script", Forbidden::RunsCode),
    ("cmd", Forbidden::RunsCode),
    ("command", Forbidden::RunsCode),
    ("sudo", Forbidden::RunsCode),
    ("file", Forbidden::OpensFile),
    ("debug", Forbidden::OpensFile),
];

/// Whole names.
const NAMES: [(&str, Forbidden); 32] = [
    ("ssh_options", Forbidden::RunsCode),
    // fence_vmware, fence_gce.
    ("exec", Forbidden::RunsCode),
    ("runonfail", Forbidden::RunsCode),
    ("runonwarn", Forbidden::RunsCode),
    // fence_openstack reads it with a shell.
    ("openrc", Forbidden::RunsCode),
    ("kubeconfig", Forbidden::OpensFile),
    ("logfile", Forbidden::OpensFile),
    ("cacert", Forbidden::OpensFile),
    ("tlscert", Forbidden::OpensFile),
    ("tlscacert", Forbidden::OpensFile),
    ("tlskey", Forbidden::OpensFile),
    ("action", Forbidden::Decides),
    ("option", Forbidden::Decides),
    ("nodename", Forbidden::Decides),
    ("delay", Forbidden::Decides),
    ("disable_timeout", Forbidden::Decides),
    ("plug_separator", Forbidden::Decides),
    ("plug", Forbidden::Decides),
    ("port", Forbidden::Decides),
    // fence_compute only writes down what it is told.
    ("record_only", Forbidden::CallsItOff),
    ("missing_as_off", Forbidden::CallsItOff),
    // fence_gce ends before the machine is off.
    ("earlyexit", Forbidden::CallsItOff),
    // fence_skalar lets the guest decide.
    ("graceful", Forbidden::CallsItOff),
    // fence_azure_arm moves the machine into another network instead.
    ("network_fencing", Forbidden::CallsItOff),
    ("separator", Forbidden::Speech),
    ("quiet", Forbidden::Speech),
    ("suppress_errors", Forbidden::Speech),
    ("verbose", Forbidden::Speech),
    ("verbose_level", Forbidden::Speech),
    ("version", Forbidden::Speech),
    ("help", Forbidden::Speech),
    ("usage", Forbidden::Speech),
];

/// Why nobody may set this parameter, if nobody may.
pub fn forbidden(name: &str) -> Option<Forbidden> {
    let name = plain(name).to_ascii_lowercase();
    if let Some((_, why)) = NAMES.iter().find(|(whole, _)| *whole == name) {
        return Some(*why);
    }
    let parts: Vec<&str> = name.split('_').collect();
    if let Some((_, why)) = ENDINGS.iter().find(|(end, _)| parts.last() == Some(end)) {
        return Some(*why);
    }
    if parts.first() == Some(&"debug") {
        return Some(Forbidden::OpensFile);
    }
    parts.contains(&"sudo").then_some(Forbidden::RunsCode)
}

/// Why nobody may set this parameter to this value, if nobody may.
pub(super) fn forbidden_value(name: &str, value: &str) -> Option<Forbidden> {
    // One command, and nobody would see the machine off.
    (plain(name) == "method" && value.eq_ignore_ascii_case("cycle")).then_some(Forbidden::CallsItOff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_opens_decides_or_hides_is_forbidden_in_every_spelling() {
        for (name, why) in [
            ("ipmitool_path", Forbidden::RunsCode),
            ("ipmitool-path", Forbidden::RunsCode),
            ("password_script", Forbidden::RunsCode),
            ("snmp_priv_passwd_script", Forbidden::RunsCode),
            ("ssh-options", Forbidden::RunsCode),
            ("use_sudo", Forbidden::RunsCode),
            ("sudo_path", Forbidden::RunsCode),
            ("debug_file", Forbidden::OpensFile),
            ("DEBUG", Forbidden::OpensFile),
            ("boto3_debug", Forbidden::OpensFile),
            ("identity_file", Forbidden::OpensFile),
            ("Action", Forbidden::Decides),
            ("disable-timeout", Forbidden::Decides),
            ("missing_as_off", Forbidden::CallsItOff),
            ("help", Forbidden::Speech),
        ] {
            assert_eq!(forbidden(name), Some(why), "{name}");
        }
    }

    #[test]
    fn what_a_device_has_to_be_told_is_not() {
        for name in
            ["ip", "ipport", "username", "password", "lanplus", "cipher", "systems_uri", "pathology", "cmd_prompt"]
        {
            assert_eq!(forbidden(name), None, "{name}");
        }
        assert_eq!(forbidden_value("method", "onoff"), None);
        assert_eq!(forbidden_value("method", "Cycle"), Some(Forbidden::CallsItOff));
    }
}
