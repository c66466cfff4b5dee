//! Configs as people write them, and the plans that they become.
//!
//! The examples of the source documents are those of the API's own tests; a small config of a case is written out
//! beside it. A plan is shown line by line: step and level, method, action, what it proves, plug and path.

use std::fmt::Write as _;

use palisade_api::Span as ApiSpan;
use palisade_api::template::FenceTemplateSpec;
use serde_json::Value as Json;

use super::super::call::{THE_NODE, Value};
use super::super::config_for;
use super::*;

const NETWORK_AND_DISK: &str = include_str!("../../../../api/tests/objects/good/001-network-and-disk-or-power.yaml");
const FC_AND_EATON: &str = include_str!("../../../../api/tests/objects/good/003-fc-and-eaton.yaml");
const CLOUD_DEFAULT: &str = include_str!("../../../../api/tests/objects/good/003-cloud-default.yaml");

/// Templates for the configs that are written out in a case.
const TEMPLATES: &str = r#"
{kind: FenceTemplate, metadata: {name: bmc}, spec: {native: {driver: redfish}, parameters: {ip: "{node}.bmc"}, proves: {class: Power}}}
---
{kind: FenceTemplate, metadata: {name: pdu}, spec: {native: {driver: snmp-pdu}, parameters: {ip: pdu1}, proves: {class: Power}}}
---
{kind: FenceTemplate, metadata: {name: agent}, spec: {agent: {name: fence_virsh}, proves: {class: Power}}}
---
{kind: FenceTemplate, metadata: {name: agent-read-by-pdu}, spec: {agent: {name: fence_apc_snmp}, parameters: {ip: pdu1}, proves: {class: Power}, readBack: {template: pdu}}}
---
{kind: FenceTemplate, metadata: {name: twice-the-same}, spec: {native: {driver: snmp-pdu}, parameters: {ip: pdu1}, proves: {class: Power}, readBack: {template: pdu}}}
---
{kind: FenceTemplate, metadata: {name: switch}, spec: {agent: {name: fence_ifmib}, parameters: {ip: sw1}, proves: {class: Network}}}
---
{kind: FenceTemplate, metadata: {name: reset}, spec: {agent: {name: fence_virsh}}}
---
{kind: FenceTemplate, metadata: {name: ceph}, spec: {storage: {provider: ceph}, proves: {class: Storage}}}
---
{kind: FenceTemplate, metadata: {name: csi}, spec: {storage: {provider: csi}, proves: {class: Driver}}}
---
{kind: FenceTemplate, metadata: {name: repair}, spec: {podTemplate: {spec: {containers: [{name: a, image: a}]}}, timeout: 10m}}
---
{kind: FenceTemplate, metadata: {name: terminate}, spec: {podTemplate: {spec: {containers: [{name: a, image: a}]}}, proves: {class: Power}, readBack: {template: pdu}}}
---
{kind: FenceTemplate, metadata: {name: by-word}, spec: {podTemplate: {spec: {containers: [{name: a, image: a}]}}, proves: {class: Power, withoutReadBack: true}}}
---
{kind: FenceTemplate, metadata: {name: detach}, spec: {podTemplate: {spec: {containers: [{name: a, image: a}]}}, proves: {class: Storage, drivers: [a.csi]}, readBack: {template: switch}}}
---
{kind: FenceTemplate, metadata: {name: cordon}, spec: {builtin: {name: cordon}}}
---
{kind: FenceTemplate, metadata: {name: uncordon}, spec: {builtin: {name: uncordon}}}
---
{kind: FenceTemplate, metadata: {name: taint}, spec: {builtin: {name: taint, taint: {key: example.com/broken}}}}
---
{kind: FenceTemplate, metadata: {name: release-pods}, spec: {builtin: {name: release-pods}}}
---
{kind: FenceTemplate, metadata: {name: delete-node}, spec: {builtin: {name: delete-node}}}
---
{kind: FenceTemplate, metadata: {name: read-by-nobody}, spec: {agent: {name: fence_virsh}, proves: {class: Power}, readBack: {template: gone}}}
"#;

#[derive(Default)]
struct World {
    configs: BTreeMap<String, FenceConfigSpec>,
    templates: BTreeMap<String, FenceTemplateSpec>,
    stay_off: bool,
    revoking: BTreeSet<ProviderName>,
    declared_power: Vec<String>,
}

impl World {
    fn of(texts: &[&str]) -> Self {
        let mut world = Self::default();
        for document in texts.iter().flat_map(|text| serde_saphyr::from_multiple::<Json>(text).unwrap()) {
            let name = document["metadata"]["name"].as_str().unwrap().to_owned();
            let spec = document["spec"].clone();
            match document["kind"].as_str().unwrap() {
                "FenceConfig" => _ = world.configs.insert(name, serde_json::from_value(spec).unwrap()),
                "FenceTemplate" => _ = world.templates.insert(name, serde_json::from_value(spec).unwrap()),
                kind => panic!("no {kind} in here"),
            }
        }
        world
    }

    /// A config named `c` for host1, with the templates above.
    fn with(spec: &str) -> Self {
        let mut world = Self::of(&[TEMPLATES]);
        world.configs.insert("c".to_owned(), serde_saphyr::from_str(spec).unwrap());
        world
    }

    fn resolve(&self, config: &str, node: &str) -> Result<Resolved, String> {
        let templates = self.templates.iter().map(|(name, spec)| (name.as_str(), spec)).collect();
        let node = NodeName::from(node);
        let (revoking, declared_power) = (&self.revoking, &self.declared_power);
        let wanted = Wanted { node: &node, stay_off: self.stay_off, revoking, declared_power };
        settings(config, &self.configs[config], &templates, wanted).map_err(|problem| problem.to_string())
    }

    fn plans(&self, config: &str, node: &str) -> String {
        show(&self.resolve(config, node).unwrap().settings)
    }
}

fn show(settings: &Settings) -> String {
    let mut lines = String::new();
    let plans = [
        ("isolation", &settings.isolation),
        ("power-off", &settings.power_off),
        ("power-on", &settings.power_on),
        ("recovery", &settings.recovery),
    ];
    for (step, plan) in plans {
        for (index, level) in plan.levels.iter().enumerate() {
            for method in &level.methods {
                writeln!(lines, "{step} {index} {}", line(method)).unwrap();
            }
        }
    }
    for (isolation, method) in &settings.undo {
        writeln!(lines, "undo {isolation} {}", line(method)).unwrap();
    }
    lines
}

fn line(method: &Method) -> String {
    let proves = method.proves.map(|class| format!(" proves={class}/{}", method.scope)).unwrap_or_default();
    let plugs = method.plugs.join(",");
    let Method { name, action, path, stable_off, retries, .. } = method;
    format!("{name} {action:?}{proves} plug={plugs} path={path} stable={stable_off} retries={retries}")
}

/// The lines of a plan, without the indentation of the code around them.
fn lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.fold(String::new(), |all, line| all + line + "\n")
}

fn problem(spec: &str) -> String {
    World::with(spec).resolve("c", "host1").expect_err("a Problem")
}

#[test]
fn document_001_network_and_disk_or_power() {
    let world = World::of(&[NETWORK_AND_DISK]);
    let found = world.resolve("network-and-disk-or-power", "host1").unwrap();
    let wanted = "
        isolation 0 switch-port CutOff proves=network/network plug=12 path=same-agent stable=5s retries=2
        isolation 0 disk CutOff proves=storage/drivers:iscsi.csi.example.com; plug=node path=same-agent stable=5s retries=2
        isolation 1 bmc CutOff proves=power/node plug=node path=same-driver stable=2s retries=2
        power-on 0 bmc Restore plug=node path=same-driver stable=2s retries=2
        undo disk disk Restore plug=node path=same-agent stable=5s retries=2
        undo switch-port switch-port Restore plug=12 path=same-agent stable=5s retries=2
    ";
    assert_eq!(show(&found.settings), lines(wanted));
    assert_eq!(found.settings.isolation.retries, 1);
    let names: Vec<&str> = found.calls.keys().map(MethodName::as_str).collect();
    assert_eq!(names, ["bmc", "disk", "switch-port"]);
    let bmc = &found.calls[&MethodName::from("bmc")].device;
    assert_eq!(bmc.parameters["ip"], Value::Text("host1.bmc.example.com".to_owned()));
    let password = Value::Secret { name: "bmc-host1".to_owned(), key: "bmc-password".to_owned() };
    assert_eq!(bmc.parameters["password"], password);
    assert_eq!(bmc.identity, palisade_api::template::Identity::Required);
}

#[test]
fn document_003_fc_off_eaton_off_and_on_fc_on() {
    let world = World::of(&[FC_AND_EATON]);
    let found = world.resolve("host1", "host1").unwrap();
    let wanted = "
        isolation 0 fc-off CutOff proves=storage/drivers:fc.csi.example.com; plug=2 path=same-agent stable=10s retries=2
        power-off 0 eaton-off CutOff proves=power/node plug=1 path=independent stable=10s retries=1
        power-on 0 eaton-on Restore plug=1 path=independent stable=10s retries=1
        undo fc-off fc-on Restore plug=2 path=same-agent stable=10s retries=2
    ";
    assert_eq!(show(&found.settings), lines(wanted), "fc-on lifts fc-off, and does not run a second time");
    let Settings { restarts, power_after, stay_off, .. } = found.settings;
    assert_eq!((restarts, power_after, stay_off), (5, Span::mins(5), false));
    assert_eq!(found.settings.power_off.retries, 3);
    let eaton = &found.calls[&MethodName::from("eaton-off")];
    assert_eq!(eaton.device.mechanism, Mechanism::Agent("fence_eaton_snmp".to_owned()));
    let reader = eaton.read_back.as_ref().unwrap();
    assert_eq!((reader.template.as_str(), &*reader.plug), ("eaton-native", "1"), "the same outlet, by another path");
    assert!(!reader.parameters.contains_key("password"), "the agent's credentials are not the reader's");
}

#[test]
fn a_bmc_that_reads_an_outlet_back_has_no_plug_and_no_parameters_of_the_outlets() {
    let templates = r#"
{kind: FenceTemplate, metadata: {name: bmc}, spec: {native: {driver: ipmi}, parameters: {ip: "{node}.bmc"}, proves: {class: Power}}}
---
{kind: FenceTemplate, metadata: {name: pdu}, spec: {agent: {name: fence_apc_snmp}, parameters: {ip: pdu1, power_wait: "1"}, proves: {class: Power}, readBack: {template: bmc}}}
"#;
    let mut world = World::of(&[templates]);
    let spec = "{nodeNames: [host1], powerManagement: {levels: [{name: a, methods: [{name: pdu, template: pdu, parameters: {retry_on: '2'}, perNode: {host1: {plug: '3'}}}]}]}}";
    world.configs.insert("c".to_owned(), serde_saphyr::from_str(spec).unwrap());
    let found = world.resolve("c", "host1").unwrap();
    let call = &found.calls[&MethodName::from("pdu")];
    assert_eq!(&*call.device.plug, "3");
    assert_eq!(call.read_back.as_ref().map(|reader| &*reader.plug), Some(THE_NODE));
}

#[test]
fn the_system_of_a_redfish_service_is_a_parameter_to_the_agent_and_a_plug_to_whoever_reads_back() {
    let templates = r#"
{kind: FenceTemplate, metadata: {name: bmc}, spec: {native: {driver: redfish}, parameters: {ip: "{node}.bmc"}, proves: {class: Power}}}
---
{kind: FenceTemplate, metadata: {name: agent}, spec: {agent: {name: fence_redfish}, parameters: {ip: "{node}.bmc"}, proves: {class: Power}, readBack: {template: bmc}}}
"#;
    let mut world = World::of(&[templates]);
    let spec = "{nodeNames: [host1], powerManagement: {levels: [{name: a, methods: [{name: off, template: agent, parameters: {systems_uri: '/redfish/v1/Systems/{node}'}}]}]}}";
    world.configs.insert("c".to_owned(), serde_saphyr::from_str(spec).unwrap());
    let found = world.resolve("c", "host1").unwrap();
    let call = &found.calls[&MethodName::from("off")];
    assert_eq!(&*call.device.plug, THE_NODE, "fence_redfish has no plug");
    assert!(call.device.parameters.contains_key("systems_uri"));
    assert_eq!(call.read_back.as_ref().map(|reader| &*reader.plug), Some("/redfish/v1/Systems/host1"));
}

#[test]
fn document_003_the_default_of_a_cloud() {
    let uncordon = "{kind: FenceTemplate, metadata: {name: uncordon}, spec: {builtin: {name: uncordon}}}";
    let wanted = "
        isolation 0 mark-unschedulable Cordon plug=node path=same-driver stable=2s retries=2
        power-off 0 restart-instance CutOff proves=power/node plug=node path=same-agent stable=5s retries=2
        power-on 0 restart-instance Restore plug=node path=same-agent stable=5s retries=2
        recovery 0 mark-schedulable Uncordon plug=node path=same-driver stable=2s retries=2
    ";
    assert_eq!(World::of(&[CLOUD_DEFAULT, uncordon]).plans("aws", "worker-1"), lines(wanted));
}

#[test]
fn two_power_supplies_are_two_methods_and_both_go_off_before_either_goes_on() {
    let wanted = "
        isolation 0 a-off CutOff proves=power/node plug=3 path=independent stable=5s retries=1
        isolation 0 b-off CutOff proves=power/node plug=4 path=independent stable=5s retries=1
        power-on 0 a-on Restore plug=3 path=independent stable=5s retries=1
        power-on 0 b-on Restore plug=4 path=independent stable=5s retries=1
    ";
    let shown = World::of(&[FC_AND_EATON]).plans("two-supplies", "host2");
    assert_eq!(shown, lines(wanted), "a config without an isolation step isolates by power");
}

#[test]
fn a_way_on_that_nobody_named_is_the_opposite_of_the_way_off() {
    let world = World::with(
        r#"{isolation: {levels: [{name: net, methods: [{name: port, template: switch, parameters: {plug: "7"}}]}]},
            powerManagement: {levels: [
              {name: bmc, methods: [{name: bmc, template: bmc}]},
              {name: pdu, methods: [{name: a, template: pdu, parameters: {plug: "1"}}, {name: b, template: pdu, parameters: {plug: "2"}}]}]}}"#,
    );
    let wanted = "
        isolation 0 port CutOff proves=network/network plug=7 path=same-agent stable=5s retries=2
        power-off 0 bmc CutOff proves=power/node plug=node path=same-driver stable=2s retries=2
        power-off 1 a CutOff proves=power/node plug=1 path=same-driver stable=2s retries=2
        power-off 1 b CutOff proves=power/node plug=2 path=same-driver stable=2s retries=2
        power-on 0 bmc Restore plug=node path=same-driver stable=2s retries=2
        power-on 1 a Restore plug=1 path=same-driver stable=2s retries=2
        power-on 1 b Restore plug=2 path=same-driver stable=2s retries=2
        undo port port Restore plug=7 path=same-agent stable=5s retries=2
    ";
    assert_eq!(world.plans("c", "host1"), lines(wanted));
}

#[test]
fn a_recovery_method_that_switches_power_on_is_the_way_on() {
    let world = World::with(
        "{isolation: {levels: [{name: power, methods: [{name: bmc-off, template: bmc}]}]},
          recovery: {levels: [{name: power, methods: [{name: bmc-on, template: bmc}, {name: schedule, template: uncordon}]}]}}",
    );
    let wanted = "
        isolation 0 bmc-off CutOff proves=power/node plug=node path=same-driver stable=2s retries=2
        power-on 0 bmc-on Restore plug=node path=same-driver stable=2s retries=2
        recovery 0 schedule Uncordon plug=node path=same-driver stable=2s retries=2
    ";
    assert_eq!(world.plans("c", "host1"), lines(wanted));
}

#[test]
fn what_leaves_no_trace_on_record_is_given_back_by_the_recovery_step() {
    let world = World::with(
        "{isolation: {levels: [{name: a, methods: [{name: off, template: reset, parameters: {plug: vm1}}, {name: bmc, template: bmc}]}]},
          recovery: {levels: [{name: a, methods: [{name: on, template: reset, parameters: {plug: vm1}}]}]}}",
    );
    assert!(world.plans("c", "host1").contains("recovery 0 on Restore plug=vm1"));
}

#[test]
fn only_the_same_port_of_the_same_switch_is_given_back_by_a_recovery_method() {
    for (own, lifts) in [("plug: \"7\"", true), ("plug: \"8\"", false), ("plug: \"7\", ip: sw2", false)] {
        let spec = format!(
            "{{isolation: {{levels: [{{name: a, methods: [{{name: off, template: switch, parameters: {{plug: \"7\"}}}}]}}]}},
               recovery: {{levels: [{{name: a, methods: [{{name: on, template: switch, parameters: {{{own}}}}}]}}]}}}}"
        );
        let plans = World::with(&spec).plans("c", "host1");
        assert_eq!(plans.contains("undo off on Restore plug=7"), lifts, "{own}\n{plans}");
        assert_eq!(plans.contains("undo off off Restore plug=7"), !lifts, "{own}\n{plans}");
        assert_eq!(plans.contains("recovery 0 on Restore"), !lifts, "{own}\n{plans}");
    }
}

#[test]
fn what_keeps_stale_writes_away_is_kept_for_recovery_even_if_the_power_step_names_it() {
    let world = World::with(
        r#"{powerManagement: {levels: [{name: a, methods: [{name: port-off, template: switch, parameters: {plug: "7"}},
              {name: bmc-off, template: bmc}, {name: port-on, template: switch, action: SwitchOn, parameters: {plug: "7"}}]}]}}"#,
    );
    let wanted = "
        isolation 0 port-off CutOff proves=network/network plug=7 path=same-agent stable=5s retries=2
        isolation 0 bmc-off CutOff proves=power/node plug=node path=same-driver stable=2s retries=2
        power-on 0 bmc-off Restore plug=node path=same-driver stable=2s retries=2
        undo port-off port-on Restore plug=7 path=same-agent stable=5s retries=2
    ";
    assert_eq!(world.plans("c", "host1"), lines(wanted));
}

#[test]
fn storage_is_read_by_its_provider_and_may_leave_old_sessions_dead() {
    let mut world = World::with(
        "{isolation: {levels: [{name: a, methods: [{name: fence, template: ceph}, {name: volumes, template: csi}]}]}}",
    );
    world.revoking.insert(ProviderName::from("ceph"));
    let found = world.resolve("c", "host1").unwrap();
    let wanted = "
        isolation 0 fence CutOff proves=storage/provider:ceph plug=node path=same-driver stable=2s retries=2
        isolation 0 volumes FenceByDriver proves=driver/provider:csi plug=node path=same-driver stable=2s retries=2
        undo fence fence Restore plug=node path=same-driver stable=2s retries=2
        undo volumes volumes Restore plug=node path=same-driver stable=2s retries=2
    ";
    assert_eq!(show(&found.settings), lines(wanted));
    let revokes = |name: &str| found.settings.undo[&MethodName::from(name)].revokes_sessions;
    assert!(revokes("fence") && !revokes("volumes"));
}

#[test]
fn builtins_and_pods_run_where_the_core_has_no_word_for_them() {
    let world = World::with(
        "{isolation: {levels: [{name: a, methods: [{name: hold, template: cordon}, {name: mark, template: taint},
            {name: repair, template: repair}, {name: let-go, template: release-pods}]}]},
          powerManagement: {levels: [{name: a, methods: [{name: bmc, template: bmc}, {name: forget, template: delete-node}]}]}}",
    );
    let found = world.resolve("c", "host1").unwrap();
    let wanted = "
        isolation 0 hold Cordon plug=node path=same-driver stable=2s retries=2
        isolation 0 mark Run plug=node path=same-driver stable=2s retries=2
        isolation 0 repair Run plug=node path=declared stable=5s retries=2
        power-off 0 bmc CutOff proves=power/node plug=node path=same-driver stable=2s retries=2
        power-on 0 bmc Restore plug=node path=same-driver stable=2s retries=2
    ";
    assert_eq!(show(&found.settings), lines(wanted));
    assert!(found.settings.delete_node);
    assert!(matches!(found.calls[&MethodName::from("mark")].device.mechanism, Mechanism::Builtin(_)));
    let patience = found.settings.settle;
    assert!(patience >= Span::mins(10) + JOB_START, "a pod at work within its timeout is not lost: {patience}");
}

#[test]
fn the_time_in_which_a_call_may_be_sent_follows_the_slowest_device_within_bounds() {
    let window = |template: &str| {
        let mut world = World::with(
            "{powerManagement: {levels: [{name: a, methods: [{name: it, template: it, action: SwitchOff}, {name: on, template: bmc, action: SwitchOn}]}]}}",
        );
        world.templates.get_mut("bmc").unwrap().timeout = ApiSpan::from_secs(1);
        world.templates.insert("it".to_owned(), serde_saphyr::from_str(template).unwrap());
        world.resolve("c", "host1").unwrap().settings.send_window
    };
    let native = |timeout: &str| {
        window(&format!(
            "{{native: {{driver: redfish}}, parameters: {{ip: x}}, timeout: {timeout}, proves: {{class: Power}}}}"
        ))
    };
    assert_eq!(native("2s"), Span::secs(5), "a quick one gets the usual time");
    assert_eq!(native("25s"), Span::secs(25), "a slow one gets its own");
    assert_eq!(native("10m"), Span::secs(30), "others wait for it, so there is an end to it");
    let agent = "{agent: {name: fence_virsh}, timeout: 10m, proves: {class: Power}}";
    assert_eq!(window(agent), Span::secs(5), "a Job is made at once, and has a deadline of its own");
}

#[test]
fn a_pod_that_switches_off_is_read_by_a_device_and_needs_a_way_on() {
    let spec = |on: &str| {
        format!(
            "{{powerManagement: {{levels: [{{name: a, methods: [{{name: off, template: terminate, parameters: {{plug: \"3\"}}}}{on}]}}]}}}}"
        )
    };
    let wanted = "
        isolation 0 off CutOff proves=power/node plug=3 path=independent stable=5s retries=2
        power-on 0 on Run plug=node path=declared stable=5s retries=2
    ";
    let with_on = World::with(&spec(", {name: on, template: repair, action: SwitchOn}"));
    assert_eq!(with_on.plans("c", "host1"), lines(wanted));
    assert!(problem(&spec("")).contains("a pod that switches off has no opposite"));
}

/// The policy vouches for `by-word`.
fn vouched(spec: &str) -> World {
    World { declared_power: vec!["other".to_owned(), "by-word".to_owned()], ..World::with(spec) }
}

const BY_WORD: &str = "{powerManagement: {levels: [{name: a, methods: [{name: ready, template: cordon}, {name: off, template: by-word}, {name: on, template: bmc, action: SwitchOn}]}]}}";

#[test]
fn a_pod_that_nobody_reads_back_counts_as_a_persons_word_where_the_policy_names_it() {
    let wanted = "
        isolation 0 ready Cordon plug=node path=same-driver stable=2s retries=2
        isolation 0 off CutOff proves=confirmed/node plug=node path=declared stable=5s retries=2
        power-on 0 on Restore plug=node path=same-driver stable=2s retries=2
    ";
    assert_eq!(vouched(BY_WORD).plans("c", "host1"), lines(wanted));
}

#[test]
fn a_pod_that_nobody_reads_back_is_refused_where_the_policy_does_not_name_it() {
    for trusted in [vec![], vec!["by-words".to_owned()]] {
        let world = World { declared_power: trusted, ..World::with(BY_WORD) };
        let said = world.resolve("c", "host1").expect_err("a Problem");
        assert!(said.starts_with("FenceTemplate/by-word proves.withoutReadBack: nobody reads back"), "{said}");
        assert!(said.contains("FencePolicy/cluster") && said.contains("add `by-word` to spec.declaredPower"), "{said}");
    }
}

#[test]
fn a_pod_that_is_read_back_needs_nobody_to_vouch_for_it_and_gets_nothing_by_it() {
    let spec = "{powerManagement: {levels: [{name: a, methods: [{name: off, template: terminate, parameters: {plug: \"3\"}}, {name: on, template: repair, action: SwitchOn}]}]}}";
    let mut world = World { declared_power: vec!["terminate".to_owned()], ..World::with(spec) };
    world.templates.get_mut("terminate").unwrap().proves.without_read_back = true;
    assert!(world.plans("c", "host1").contains("off CutOff proves=power/node plug=3 path=independent"));
}

/// What a word must not be mixed with, and what must not stand on it.
#[test]
fn a_pod_that_is_vouched_for_stands_alone_and_needs_a_way_on() {
    let power = |methods: &str| format!("{{powerManagement: {{levels: [{{name: a, methods: [{methods}]}}]}}}}");
    let on = "{name: on, template: bmc, action: SwitchOn}";
    let cases = [
        (power("{name: off, template: by-word}"), "a pod that switches off has no opposite"),
        (power(&format!("{{name: bmc, template: bmc}}, {{name: off, template: by-word}}, {on}")), "give it a level of its own"),
        (power(&format!("{{name: off, template: by-word}}, {{name: bmc, template: bmc}}, {on}")), "give it a level of its own"),
        (power(&format!("{{name: a, template: by-word}}, {{name: b, template: by-word}}, {on}")), "give it a level of its own"),
        (power(&format!("{{name: off, template: by-word}}, {{name: c, template: cordon}}, {on}")), "give it a level of its own"),
        (power(&format!("{{name: off, template: by-word}}, {{name: d, template: delete-node}}, {on}")), "a pod that nobody reads back proves nothing"),
        (
            "{isolation: {levels: [{name: a, methods: [{name: bmc, template: bmc}]}]}, recovery: {levels: [{name: a, methods: [{name: m, template: by-word}]}]}}".to_owned(),
            "is not told that it should give back",
        ),
    ];
    for (spec, wanted) in cases {
        let said = vouched(&spec).resolve("c", "host1").expect_err(&spec);
        assert!(said.contains(wanted), "{spec}\n wanted {wanted}\n found  {said}");
    }
}

#[test]
fn a_level_of_its_own_after_a_device_is_where_a_word_belongs() {
    let spec = "{stayOff: true, powerManagement: {levels: [{name: a, methods: [{name: bmc, template: bmc}]}, {name: b, methods: [{name: off, template: by-word}]}]}}";
    let wanted = "
        isolation 0 bmc CutOff proves=power/node plug=node path=same-driver stable=2s retries=2
        isolation 1 off CutOff proves=confirmed/node plug=node path=declared stable=5s retries=2
        power-on 0 bmc Restore plug=node path=same-driver stable=2s retries=2
    ";
    assert_eq!(vouched(spec).plans("c", "host1"), lines(wanted));
}

#[test]
fn power_off_on_request_keeps_the_way_on_for_whoever_resumes() {
    let mut world = World::with("{powerManagement: {levels: [{name: a, methods: [{name: bmc, template: bmc}]}]}}");
    assert!(!world.resolve("c", "host1").unwrap().settings.stay_off);
    world.stay_off = true;
    let found = world.resolve("c", "host1").unwrap().settings;
    assert!(found.stay_off);
    assert_eq!(found.power_on.levels.len(), 1);
}

#[test]
fn an_agent_is_watched_longer_than_a_driver_and_its_own_word_is_called_so() {
    let path = |template: &str| {
        let spec = format!(
            "{{powerManagement: {{levels: [{{name: a, methods: [{{name: m, template: {template}, parameters: {{plug: \"1\"}}}}]}}]}}}}"
        );
        let found = World::with(&spec).resolve("c", "host1").unwrap().settings;
        let method = found.isolation.method(0, 0).unwrap();
        (method.path.to_string(), method.stable_off.to_string())
    };
    let said = |path: &str, steady: &str| (path.to_owned(), steady.to_owned());
    assert_eq!(path("agent"), said("same-agent", "5s"));
    assert_eq!(path("pdu"), said("same-driver", "2s"));
    assert_eq!(path("agent-read-by-pdu"), said("independent", "5s"));
    assert_eq!(
        path("twice-the-same"),
        said("same-driver", "2s"),
        "another template for the same device is no other path"
    );
}

#[test]
fn off_is_off_for_a_driver_and_for_an_agent_only_where_somebody_says_so() {
    let off_is_off = |template: &str| {
        let spec = format!(
            "{{powerManagement: {{levels: [{{name: a, methods: [{{name: m, template: {template}, parameters: {{plug: \"1\"}}}}]}}]}}}}"
        );
        World::with(&spec).resolve("c", "host1").unwrap().settings.isolation.method(0, 0).unwrap().tells_hibernation
    };
    assert!(off_is_off("pdu"));
    assert!(!off_is_off("agent"));
}

#[test]
fn each_power_cut_knows_its_own_way_back() {
    let world = World::with("{powerManagement: {levels: [{name: a, methods: [{name: bmc, template: bmc}]}]}}");
    let on = world.resolve("c", "host1").unwrap().settings.switch_on;
    assert_eq!(on.get(&"bmc".into()).map(|method| method.action), Some(Action::Restore));
}

#[test]
fn a_node_without_its_line_is_refused_and_its_neighbours_are_not() {
    let world = World::of(&[NETWORK_AND_DISK]);
    let plug = |node: &str| {
        world
            .resolve("network-and-disk-or-power", node)
            .map(|found| found.settings.isolation.method(0, 0).unwrap().plugs.clone())
    };
    assert_eq!(plug("host0"), Ok(vec!["11".into()]));
    assert_eq!(plug("host1"), Ok(vec!["12".into()]));
    let wanted = "FenceConfig/network-and-disk-or-power isolation.levels[network-and-disk].methods[switch-port].perNode: \
                  other nodes have a `plug` here and host7 has none; add a line for it: `host7: {plug: ...}`";
    assert_eq!(plug("host7"), Err(wanted.to_owned()));
}

#[test]
fn a_missing_template_breaks_its_own_config_and_no_other() {
    let broken = "{kind: FenceConfig, metadata: {name: broken}, spec: {nodeNames: [host9], isolation: {levels: [{name: a, methods: [{name: m, template: gone}]}]}}}";
    let world = World::of(&[FC_AND_EATON, broken]);
    let configs = world.configs.iter().map(|(name, spec)| (name.as_str(), spec)).collect();
    let chosen = |node: &str| config_for(&NodeName::from(node), &BTreeMap::new(), &configs).map(|(name, _)| name);
    assert_eq!((chosen("host1"), chosen("host9")), (Ok("host1"), Ok("broken")));
    assert!(world.resolve("host1", "host1").is_ok());
    let wanted = "FenceConfig/broken isolation.levels[a].methods[m].template: there is no FenceTemplate `gone`; create it, or name one that exists";
    assert_eq!(world.resolve("broken", "host9").map(|_| ()), Err(wanted.to_owned()));
}

/// What the schema lets through and still makes no sense: each with its place and the way out.
#[test]
fn what_makes_no_sense_is_refused_with_place_and_way_out() {
    let isolation = |methods: &str| format!("{{isolation: {{levels: [{{name: a, methods: [{methods}]}}]}}}}");
    let power = |methods: &str| format!("{{powerManagement: {{levels: [{{name: a, methods: [{methods}]}}]}}}}");
    let recovery = |methods: &str| {
        format!(
            "{{isolation: {{levels: [{{name: a, methods: [{{name: bmc, template: bmc}}]}}]}}, recovery: {{levels: [{{name: a, methods: [{methods}]}}]}}}}"
        )
    };
    let cases = [
        (
            isolation("{name: m, template: pdu}"),
            "isolation.levels[a].methods[m]: `pdu` needs `plug`, the outlet of the node, and host1 has none",
        ),
        (
            isolation("{name: m, template: bmc, parameters: {ip: \"\"}}"),
            "isolation.levels[a].methods[m]: `bmc` needs `ip`",
        ),
        (
            isolation("{name: m, template: agent, parameters: {plug: \"{vm}\"}}"),
            "isolation.levels[a].methods[m].parameters.plug: `{vm}` stands for nothing",
        ),
        (
            power("{name: m, template: read-by-nobody}"),
            "FenceTemplate/read-by-nobody readBack.template: there is no FenceTemplate `gone`",
        ),
        (isolation("{name: m, template: uncordon}"), "put it into recovery"),
        (recovery("{name: m, template: cordon}"), "of the builtins only uncordon gives something back"),
        (
            recovery("{name: m, template: terminate}"),
            "is not told that it should give back; name a template that proves None",
        ),
        (isolation("{name: m, template: cordon, parameters: {plug: \"1\"}}"), "a builtin takes no parameters"),
        (
            isolation("{name: m, template: repair, parameters: {plug: \"1\"}}"),
            "a podTemplate without readBack takes no parameters",
        ),
        (isolation("{name: m, template: detach}"), "has no opposite, so the node could never be let in again"),
        (isolation("{name: m, template: delete-node}"), "add a method whose template proves Power"),
        (power("{name: m, template: repair}"), "nothing in this level shows that the machine is off"),
        (
            power("{name: m, template: bmc}, {name: n, template: ceph, action: SwitchOn}"),
            "methods[n]: what keeps the node from its data is given back when it is clean again",
        ),
        (
            recovery("{name: bmc, template: switch, parameters: {plug: \"1\"}}"),
            "recovery.levels[a].methods[bmc].name: another method has this name and does not make the same call (FenceConfig/c isolation.levels[a].methods[bmc])",
        ),
    ];
    for (spec, wanted) in cases {
        let said = problem(&spec);
        assert!(said.contains(wanted), "{spec}\n wanted {wanted}\n found  {said}");
    }
    let kept = "{stayOff: true, powerManagement: {levels: [{name: a, methods: [{name: m, template: bmc}, {name: n, template: delete-node}]}]}}";
    assert!(problem(kept).ends_with("remove stayOff"));
}

#[test]
fn every_method_of_a_plan_has_its_call() {
    for (text, config, node) in [
        (NETWORK_AND_DISK, "network-and-disk-or-power", "host0"),
        (FC_AND_EATON, "host1", "host1"),
        (FC_AND_EATON, "two-supplies", "host2"),
    ] {
        let Resolved { settings, calls } = World::of(&[text]).resolve(config, node).unwrap();
        let plans = [&settings.isolation, &settings.power_off, &settings.power_on, &settings.recovery];
        let methods = plans.into_iter().flat_map(|plan| &plan.levels).flat_map(|level| &level.methods);
        for method in methods.chain(settings.undo.values()) {
            let call = calls.get(&method.name).unwrap_or_else(|| panic!("{config}: no call for {}", method.name));
            assert_eq!(method.plugs, std::slice::from_ref(&call.device.plug), "one call, one plug");
            assert!(&*call.device.plug != THE_NODE || !call.device.parameters.contains_key("plug"));
        }
    }
}
