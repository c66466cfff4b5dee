//! Two lists of forbidden parameters, in two crates that do not know each other: the schema's, which a person meets when a
//! FenceTemplate is applied, and the pod's, which stands before the agent.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use palisade_api::names;
use palisade_cluster::api::{Api, Kind, Settings};
use palisade_cluster::clock::Clock;
use palisade_devices::agent::forbidden;
use serde_json::{Value, json};

/// Who refuses a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Both,
    /// It is harmless but for a fence agent, or known to a few agents alone: the pod knows them.
    Pod,
    Nobody,
}

const TABLE: [(&str, Who); 40] = [
    ("ipmitool_path", Who::Both),
    ("ipmitool-path", Who::Both),
    ("sudo_path", Who::Both),
    ("path", Who::Both),
    ("password_script", Who::Both),
    ("passwd-script", Who::Both),
    ("snmp_priv_passwd_script", Who::Both),
    ("run_cmd", Who::Both),
    ("run_command", Who::Both),
    ("ssh_options", Who::Both),
    ("ssh-options", Who::Both),
    ("use_sudo", Who::Both),
    ("sudo", Who::Both),
    ("debug", Who::Both),
    ("debug_file", Who::Both),
    ("identity_file", Who::Both),
    ("token_file", Who::Both),
    ("action", Who::Both),
    ("nodename", Who::Both),
    ("disable_timeout", Who::Both),
    ("disable-timeout", Who::Both),
    ("plug_separator", Who::Pod),
    ("separator", Who::Pod),
    ("missing_as_off", Who::Pod),
    ("delay", Who::Pod),
    ("quiet", Who::Pod),
    ("verbose", Who::Pod),
    ("help", Who::Pod),
    ("version", Who::Pod),
    ("runonfail", Who::Pod),
    ("openrc", Who::Pod),
    ("kubeconfig", Who::Pod),
    ("ip", Who::Nobody),
    ("ipport", Who::Nobody),
    ("username", Who::Nobody),
    ("lanplus", Who::Nobody),
    ("systems_uri", Who::Nobody),
    ("cmd_prompt", Who::Nobody),
    ("power_timeout", Who::Nobody),
    ("ssl_insecure", Who::Nobody),
];

/// An API server that knows our kinds.
fn api() -> Api {
    let api = Api::new(Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap()), &Settings::default());
    for crd in palisade_api::crds() {
        api.create(Kind::CUSTOM_RESOURCE_DEFINITION, serde_json::to_value(crd).unwrap()).unwrap();
    }
    api
}

/// A template with this one parameter beside the address.
fn template(number: usize, name: &str) -> Value {
    json!({
        "apiVersion": format!("{}/{}", names::GROUP, names::VERSION),
        "kind": "FenceTemplate",
        "metadata": { "name": format!("t{number}") },
        "spec": {
            "agent": { "name": "fence_ipmilan" },
            "parameters": { name: "1" },
            "proves": { "class": "Power" },
        },
    })
}

#[tokio::test]
async fn what_the_schema_forbids_the_pod_forbids_too() {
    let api = api();
    let kind = api.kind(names::GROUP, "FenceTemplate").unwrap();
    for (number, (name, who)) in TABLE.into_iter().enumerate() {
        let schema = api.create(kind, template(number, name)).is_err();
        let said = match (schema, forbidden(name).is_some()) {
            (true, true) => Who::Both,
            (false, true) => Who::Pod,
            (false, false) => Who::Nobody,
            (true, false) => panic!("{name}: the schema forbids it, and the pod does not"),
        };
        assert_eq!(said, who, "{name}");
    }
}

/// A parameter that is allowed is applied: otherwise the table would show nothing.
#[tokio::test]
async fn a_cycle_and_a_list_of_plugs_are_refused_by_the_schema() {
    let api = api();
    let kind = api.kind(names::GROUP, "FenceTemplate").unwrap();
    for (number, (name, value)) in [("method", "cycle"), ("plug", "3,4")].into_iter().enumerate() {
        let mut object = template(number, "ip");
        api.create(kind, object.clone()).unwrap();
        object["metadata"]["name"] = format!("bad{number}").into();
        object["spec"]["parameters"][name] = value.into();
        assert!(api.create(kind, object).is_err(), "{name}={value}");
    }
}
