//! Belongs: whether the machine behind a device is the node's, by what both say of themselves.
//!
//! Promise (I4): a device that says that it is another machine's is told nothing. What nobody says is no contradiction; where
//! the template asks for the identity, it is no match either.
//!
//! A Node shows its system's UUID and no serial number: that is given for each node, by the parameter `serial`.

use palisade_api::template::Identity as Rule;
use palisade_core::ident::NodeName;
use palisade_core::resolve::call::{Device as Target, Value};
use palisade_devices::{Failure, Identity};

/// The parameter that tells a node's serial number.
const SERIAL: &str = "serial";

/// Whether a device has to be asked for its serial number.
pub(crate) fn wants_serial(target: &Target) -> bool {
    expected(target).is_some()
}

/// Compares what a device says with what is known of the node.
pub(crate) fn check(
    known: &Identity,
    target: &Target,
    system_uuid: Option<&str>,
    node: &NodeName,
) -> Result<(), Failure> {
    let uuid = compare(known.uuid.as_deref(), system_uuid);
    let serial = compare(known.serial.as_deref(), expected(target));
    let wired = |what: &str, theirs: &str, ours: &str, fix: &str| {
        Err(Failure::Refused(format!(
            "the device is wired to the machine with the {what} {theirs}, and {node} is {ours}; {fix}"
        )))
    };
    match (uuid, serial) {
        (Said::Differs(theirs, ours), _) => wired("UUID", theirs, ours, "put the address or plug right"),
        (_, Said::Differs(theirs, ours)) => {
            wired("serial number", theirs, ours, "put the address, the plug or `serial` right")
        }
        (Said::Matches, _) | (_, Said::Matches) => Ok(()),
        (Said::Nothing, Said::Nothing) => match target.identity {
            Rule::WhenKnown => Ok(()),
            Rule::Required => Err(Failure::Refused(format!(
                "the template asks for the device's identity, and nobody can tell whether it belongs to {node}; give its \
                 `serial` in perNode, or set identity to WhenKnown"
            ))),
        },
    }
}

/// What a comparison says.
enum Said<'a> {
    Matches,
    Differs(&'a str, &'a str),
    /// One of both is not known.
    Nothing,
}

/// Whether both name the same machine. A label may be written in other letters than the firmware has it.
fn compare<'a>(theirs: Option<&'a str>, ours: Option<&'a str>) -> Said<'a> {
    match (theirs.map(str::trim), ours.map(str::trim)) {
        (Some(theirs), Some(ours)) if theirs.eq_ignore_ascii_case(ours) => Said::Matches,
        (Some(theirs), Some(ours)) => Said::Differs(theirs, ours),
        (None, _) | (_, None) => Said::Nothing,
    }
}

fn expected(target: &Target) -> Option<&str> {
    match target.parameters.get(SERIAL)? {
        Value::Text(serial) => Some(serial.trim()).filter(|serial| !serial.is_empty()),
        // It is read aloud when it does not match.
        Value::Secret { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use palisade_api::template::Driver;
    use palisade_core::resolve::call::{Mechanism, THE_NODE};
    use palisade_core::time::Span;

    use super::*;

    const OURS: &str = "4c1d7e02-93aa-4fcb-b1c0-0cc47a123456";
    const OTHER: &str = "4c1d7e02-93aa-4fcb-b1c0-0cc47a999999";

    fn target(identity: Rule, serial: Option<&str>) -> Target {
        let serial = serial.map(|serial| (SERIAL.to_owned(), Value::Text(serial.to_owned())));
        Target {
            template: "bmc".to_owned(),
            mechanism: Mechanism::Native(Driver::Ipmi),
            parameters: serial.into_iter().collect::<BTreeMap<_, _>>(),
            plug: THE_NODE.into(),
            timeout: Span::secs(5),
            identity,
        }
    }

    fn says(uuid: Option<&str>, serial: Option<&str>, target: &Target) -> Result<(), Failure> {
        let known = Identity { uuid: uuid.map(str::to_owned), serial: serial.map(str::to_owned) };
        check(&known, target, Some(OURS), &NodeName::from("n1"))
    }

    fn refused(answer: &Result<(), Failure>, word: &str) {
        assert!(matches!(answer, Err(Failure::Refused(why)) if why.contains(word)), "{answer:?}");
    }

    #[test]
    fn another_machine_is_refused_whatever_else_matches() {
        for rule in [Rule::WhenKnown, Rule::Required] {
            refused(&says(Some(OTHER), Some("S-42"), &target(rule, Some("S-42"))), "with the UUID");
            refused(&says(Some(OURS), Some("S-43"), &target(rule, Some("S-42"))), "serial number S-43, and n1 is S-42");
            refused(&says(None, Some("S-43"), &target(rule, Some("S-42"))), "serial number");
        }
    }

    #[test]
    fn one_of_both_is_enough_where_the_identity_is_required() {
        let (uuid, serial) = (target(Rule::Required, None), target(Rule::Required, Some(" s-42 ")));
        assert_eq!(says(Some(OURS), None, &uuid), Ok(()));
        assert_eq!(says(Some(&OURS.to_uppercase()), None, &uuid), Ok(()));
        assert_eq!(says(None, Some("S-42"), &serial), Ok(()));
        assert_eq!(says(Some(OURS), None, &serial), Ok(()), "its inventory is broken, and its UUID is not");
        refused(&says(None, Some("S-42"), &uuid), "nobody can tell");
        refused(&says(None, None, &serial), "nobody can tell");
    }

    #[test]
    fn what_nobody_says_is_no_contradiction() {
        assert_eq!(says(None, None, &target(Rule::WhenKnown, Some("S-42"))), Ok(()));
        assert_eq!(says(None, Some("S-43"), &target(Rule::WhenKnown, None)), Ok(()));
        let nobody = check(&Identity::default(), &target(Rule::Required, None), None, &NodeName::from("n1"));
        refused(&nobody, "nobody can tell");
    }
}
