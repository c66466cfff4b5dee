//! Agent: fences that are made by fence agents and by users' own pods, in Jobs. Agents lie, hang, and die with the node that they
//! run on; what counts is what is read back.

use std::collections::BTreeSet;

use palisade_api::names::labels;
use serde_json::{Value, json};

use super::{clean, database, expect, moved, moved_and_clean, nothing_released};
use crate::world::{Agent, Bmc, Kind, Link, Look, Power, Told, World};

/// A template that calls a fence agent for the node's BMC. The machines of stories cannot keep their memory through an off.
fn agent_template(world: &impl World, name: &str, read_back: Option<&str>) -> Value {
    let bmc = world.get(Kind::Template, "bmc").unwrap_or_default();
    let mut parameters = bmc["spec"]["parameters"].as_object().cloned().unwrap_or_default();
    parameters.insert("systems_uri".to_owned(), "/redfish/v1/Systems/{node}".into());
    let mut template = json!({
        "metadata": { "name": name },
        "spec": {
            "agent": { "name": "fence_redfish" },
            "parameters": parameters,
            "secretRef": bmc["spec"]["secretRef"],
            "timeout": "25s",
            "proves": { "class": "Power", "hibernation": "Impossible" },
        },
    });
    if let Some(other) = read_back {
        template["spec"]["readBack"] = json!({ "template": other });
    }
    template
}

/// A user's own pod that runs this command, and what it proves.
fn own_template(command: &[&str], read_back: Option<&str>) -> Value {
    let container = json!({ "name": "mine", "image": "example.com/mine:1", "command": command });
    let class = if read_back.is_some() { "Power" } else { "None" };
    let mut template = json!({
        "metadata": { "name": "mine" },
        "spec": { "podTemplate": { "spec": { "containers": [container] } }, "proves": { "class": class } },
    });
    if let Some(other) = read_back {
        template["spec"]["readBack"] = json!({ "template": other });
    }
    template
}

/// One level after the other, each with these templates.
async fn levels(world: &mut impl World, levels: &[&[&str]]) -> Told {
    let config = world.get(Kind::Config, "bare-metal").unwrap_or_default();
    // Where each node's device is, if this world says so here.
    let addresses = config.pointer("/spec/powerManagement/levels/0/methods/0/perNode").cloned();
    let method = |template: &&str| match &addresses {
        Some(addresses) => json!({ "name": *template, "template": *template, "perNode": addresses }),
        None => json!({ "name": *template, "template": *template }),
    };
    // A user's own pod is not told to switch on: the way back is a method of its own.
    let back = |templates: &[&str]| {
        templates.contains(&"mine").then(|| json!({ "name": "back", "template": "bmc", "action": "SwitchOn" }))
    };
    let level = |(number, templates): (usize, &&[&str])| {
        let methods: Vec<Value> = templates.iter().map(method).chain(back(templates)).collect();
        json!({ "name": format!("level-{number}"), "methods": methods })
    };
    let levels: Vec<Value> = levels.iter().enumerate().map(level).collect();
    world.patch(Kind::Config, "bare-metal", json!({ "spec": { "powerManagement": { "levels": levels } } })).await
}

/// A database whose node is fenced by an agent, read back natively or by the agent itself.
async fn fenced_by_agent(world: &mut impl World, read_back: Option<&str>) -> Told<String> {
    world.create(Kind::Template, agent_template(world, "agent", read_back)).await?;
    levels(world, &[&["agent"]]).await?;
    database(world).await
}

async fn lose_the_network(world: &mut impl World, node: &str) -> Told {
    world.cut(node, Link::Api).await?;
    world.cut(node, Link::Peers).await
}

async fn give_it_back(world: &mut impl World, node: &str) -> Told {
    world.heal(node, Link::Peers).await?;
    world.heal(node, Link::Api).await
}

/// The Jobs of fences. Devices are asked by Jobs, too, whenever that is due.
fn jobs(world: &dyn Look) -> Vec<Value> {
    let of_fence = |job: &Value| job["metadata"]["labels"].get(labels::FENCE_UID).is_some();
    world.list(Kind::Job).into_iter().filter(of_fence).collect()
}

/// The Jobs that ever were, by UID, while something is waited for.
async fn jobs_until(world: &mut impl World, within: u64, what: &str, so: impl Fn(&dyn Look) -> bool) -> Told<usize> {
    let mut seen = BTreeSet::new();
    let watched = |world: &dyn Look| {
        seen.extend(jobs(world).iter().map(|job| job["metadata"]["uid"].to_string()));
        so(world)
    };
    world.run_until(within, what, watched).await?;
    Ok(seen.len())
}

/// Where the pod of a Job runs; empty if it does not yet.
fn executor(world: &dyn Look) -> String {
    let running = |job: &Value| job.pointer("/status/active").and_then(Value::as_u64) == Some(1);
    let Some(job) = jobs(world).into_iter().find(running) else { return String::new() };
    let of = |pod: &Value| pod.pointer("/metadata/ownerReferences/0/uid") == job.pointer("/metadata/uid");
    let pod = world.list(Kind::Pod).into_iter().find(|pod| of(pod) && pod["status"]["phase"] == "Running");
    pod.and_then(|pod| pod["spec"]["nodeName"].as_str().map(ToOwned::to_owned)).unwrap_or_default()
}

/// The Jobs of fences that have a pod without a node.
fn waiting(world: &dyn Look) -> Vec<String> {
    let pods = world.list(Kind::Pod);
    let of = |pod: &Value, job: &Value| pod.pointer("/metadata/ownerReferences/0/uid") == job.pointer("/metadata/uid");
    let waits = |job: &Value| pods.iter().any(|pod| of(pod, job) && pod.pointer("/spec/nodeName").is_none());
    let name = |job: &Value| job["metadata"]["name"].as_str().map(ToOwned::to_owned);
    jobs(world).iter().filter(|job| waits(job)).filter_map(name).collect()
}

/// An agent switches the machine off, and the native driver reads it back: the database moves.
pub async fn agent_with_native_read_back(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, Some("bmc")).await?;
    lose_the_network(world, &home).await?;
    moved(world, &home, 300).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// A switched outlet that the machine's own BMC reads back. To the BMC that machine is no outlet: each goes by a name of its own.
pub async fn outlet_that_the_bmc_reads_back(world: &mut impl World) -> Told {
    let mut outlet = agent_template(world, "outlet", Some("reader"));
    let mut reader = world.get(Kind::Template, "bmc").unwrap_or_default();
    reader["metadata"] = json!({ "name": "reader" });
    reader["spec"]["parameters"]["plug"] = "/redfish/v1/Systems/{node}".into();
    outlet["spec"]["agent"]["name"] = "fence_apc_snmp".into();
    let parameters = outlet["spec"]["parameters"].as_object_mut();
    parameters.map(|all| (all.remove("systems_uri"), all.insert("plug".to_owned(), "3".into())));
    world.create(Kind::Template, json!({ "metadata": reader["metadata"], "spec": reader["spec"] })).await?;
    world.create(Kind::Template, outlet).await?;
    levels(world, &[&["outlet"]]).await?;
    let home = database(world).await?;
    lose_the_network(world, &home).await?;
    moved(world, &home, 300).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// An agent alone, which reads back itself: a weaker proof, and called so, but one.
pub async fn agent_alone(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, None).await?;
    lose_the_network(world, &home).await?;
    moved(world, &home, 300).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The agent says that it was done and does nothing. Its own read-back gives it away: nothing is released while the machine is on.
pub async fn agent_only_says_so(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, None).await?;
    world.agent(Agent::SaysSuccess).await?;
    lose_the_network(world, &home).await?;
    nothing_released(world, 900).await?;
    expect(world.power_of(&home) == Power::On, "the machine was on all along")?;
    world.agent(Agent::Honest).await?;
    moved(world, &home, 900).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The agent lies in word and deed, while the kubelet answers its port: a contradiction releases nothing.
pub async fn agent_lies_while_the_kubelet_answers(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, None).await?;
    world.agent(Agent::LiesWholly).await?;
    world.cut(&home, Link::Api).await?;
    nothing_released(world, 900).await
}

/// The agent lies in word and deed behind a partition. An independent read-back unmasks it.
pub async fn agent_lies_behind_a_partition(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, Some("bmc")).await?;
    world.agent(Agent::LiesWholly).await?;
    lose_the_network(world, &home).await?;
    nothing_released(world, 900).await?;
    world.agent(Agent::Honest).await?;
    moved(world, &home, 900).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The agent does it and says that it failed. What is read back counts, so the database moves in the end.
pub async fn agent_fails_after_success(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, Some("bmc")).await?;
    world.agent(Agent::FailsAfterSuccess).await?;
    lose_the_network(world, &home).await?;
    moved(world, &home, 900).await?;
    world.agent(Agent::Honest).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The agent's pod is killed each time, and leaves no report. The machine may be off or not: nobody was told, so nothing is released,
/// and it is tried on until an agent says what it did.
pub async fn agent_without_a_report(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, Some("bmc")).await?;
    world.agent(Agent::KilledBySignal).await?;
    lose_the_network(world, &home).await?;
    nothing_released(world, 300).await?;
    world.agent(Agent::Honest).await?;
    moved(world, &home, 900).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The agent tells of trouble, does nothing, and ends as if all were well. Its words count, and its exit code does not.
pub async fn agent_tells_of_trouble_and_exits_zero(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, Some("bmc")).await?;
    world.agent(Agent::ErrorTextExitZero).await?;
    lose_the_network(world, &home).await?;
    nothing_released(world, 180).await?;
    expect(world.power_of(&home) == Power::On, "the machine was on all along")?;
    world.agent(Agent::Honest).await?;
    moved(world, &home, 900).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The agent's pod ends well and leaves something that is no report. The machine is off, and nobody was told: nothing is released until an
/// agent can be understood.
pub async fn agent_leaves_a_wrong_report(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, Some("bmc")).await?;
    world.agent(Agent::WrongReport).await?;
    lose_the_network(world, &home).await?;
    nothing_released(world, 120).await?;
    world.agent(Agent::Honest).await?;
    moved(world, &home, 900).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The agent meets somebody else's power cycle: it says "already off", and the machine comes back two seconds later. That is no
/// proof, and the next attempt is.
pub async fn agent_meets_a_power_cycle(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, None).await?;
    world.agent(Agent::FlapsWithCycle).await?;
    lose_the_network(world, &home).await?;
    moved(world, &home, 900).await?;
    expect(world.boots_of(&home) >= 2, "it came back once, and was switched off for good")?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The agent hangs until its time is up. The next level is native power, and succeeds.
pub async fn agent_hangs(world: &mut impl World) -> Told {
    world.create(Kind::Template, agent_template(world, "agent", None)).await?;
    levels(world, &[&["agent"], &["bmc"]]).await?;
    let home = database(world).await?;
    world.agent(Agent::Hangs).await?;
    lose_the_network(world, &home).await?;
    moved(world, &home, 600).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// Nobody has the image of a user's pod. The level has failed when the pod has not started in time, and the next one succeeds.
pub async fn image_that_nobody_has(world: &mut impl World) -> Told {
    let mut mine = own_template(&["switch", "off"], Some("bmc"));
    mine["spec"]["podTemplate"]["spec"]["containers"][0]["image"] = "nowhere.invalid/mine:1".into();
    world.create(Kind::Template, mine).await?;
    levels(world, &[&["mine"], &["bmc"]]).await?;
    let home = database(world).await?;
    lose_the_network(world, &home).await?;
    moved(world, &home, 600).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The node on which the agent runs dies in the middle of it. Another Job does it elsewhere. The machine is not switched on as long as
/// nobody can tell whether the first Job still acts; when somebody has repaired its node, it is.
pub async fn executor_dies_in_the_middle(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, Some("bmc")).await?;
    world.agent(Agent::Slow(8)).await?;
    lose_the_network(world, &home).await?;
    world.run_until(120, "an agent runs", |world| !executor(world).is_empty()).await?;
    let dies = executor(world);
    expect(dies != home, "not on the node that is fenced")?;
    world.power_off(&dies).await?;
    world.agent(Agent::Honest).await?;
    let left = |world: &dyn Look| world.has_left("db-0", &home);
    let jobs = jobs_until(world, 900, "db-0 runs on another node", left).await?;
    expect(jobs > 1, "another Job did it")?;
    give_it_back(world, &home).await?;
    let waits = |world: &dyn Look| world.power_of(&home) == Power::Off;
    world.hold_for(120, "the machine stays off while a Job may still act", waits).await?;
    world.outside_on(&dies).await?;
    clean(world, &home, 1200).await.map(drop)
}

/// When the pod is marked, every node that could run the agent falls silent as well: nobody can look at the machine any more. That is
/// waited out at an easy pace, and the database moves when there are nodes again.
pub async fn nobody_left_to_run_the_agent(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, None).await?;
    lose_the_network(world, &home).await?;
    let marked = |world: &dyn Look| world.pod("db-0").is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
    world.run_until(300, "db-0 is marked", marked).await?;
    let others: Vec<String> = world.nodes().into_iter().filter(|node| *node != home).collect();
    for node in &others {
        world.cut(node, Link::Api).await?;
    }
    nothing_released(world, 120).await?;
    for node in &others {
        world.heal(node, Link::Api).await?;
    }
    moved(world, &home, 600).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The node on which the agent runs has no way to the BMCs. Nothing is sent, and it is tried again.
pub async fn executor_without_a_way(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, Some("bmc")).await?;
    for node in world.nodes() {
        world.cut(&node, Link::Devices).await?;
    }
    lose_the_network(world, &home).await?;
    nothing_released(world, 300).await?;
    expect(world.commands_to(&home).is_empty(), "nothing was sent")?;
    for node in world.nodes() {
        world.heal(&node, Link::Devices).await?;
    }
    moved(world, &home, 900).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// An admin deletes the Job in the middle. Nobody takes that for success, and another one does it.
pub async fn job_deleted_by_an_admin(world: &mut impl World) -> Told {
    let home = fenced_by_agent(world, Some("bmc")).await?;
    world.agent(Agent::Slow(8)).await?;
    lose_the_network(world, &home).await?;
    world.run_until(120, "an agent runs", |world| !executor(world).is_empty()).await?;
    let jobs = jobs(world);
    let name = jobs.first().and_then(|job| job["metadata"]["name"].as_str()).unwrap_or_default().to_owned();
    world.delete(Kind::Job, &name).await?;
    world.agent(Agent::Honest).await?;
    moved(world, &home, 900).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The pod of a Job waits for a node with a certain label. An admin deletes the Job and leaves its pod behind, and the node comes back by
/// itself. When a node has the label at last, nobody is there any more who would switch a healthy machine off.
pub async fn pod_left_by_its_job(world: &mut impl World) -> Told {
    let mut mine = own_template(&["switch", "off"], Some("bmc"));
    mine["spec"]["podTemplate"]["spec"]["nodeSelector"] = json!({ "way-to-the-bmcs": "yes" });
    world.create(Kind::Template, mine).await?;
    levels(world, &[&["mine"]]).await?;
    let home = database(world).await?;
    lose_the_network(world, &home).await?;
    world.run_until(120, "the pod of a Job waits", |world| !waiting(world).is_empty()).await?;
    let job = waiting(world).remove(0);
    world.delete_alone(Kind::Job, &job).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await?;
    let other = world.nodes().into_iter().find(|node| *node != home).unwrap_or_default();
    world.patch(Kind::Node, &other, json!({ "metadata": { "labels": { "way-to-the-bmcs": "yes" } } })).await?;
    world.hold_for(120, "nobody switches the machine off", |world| world.power_of(&home) == Power::On).await
}

/// A user's own pod switches the machine off, and the native driver reads it back.
pub async fn own_pod_that_is_read_back(world: &mut impl World) -> Told {
    world.create(Kind::Template, own_template(&["switch", "off"], Some("bmc"))).await?;
    levels(world, &[&["mine"]]).await?;
    let home = database(world).await?;
    lose_the_network(world, &home).await?;
    moved(world, &home, 300).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// A user's own pod that nobody reads back proves nothing, however well it ends.
pub async fn own_pod_alone_proves_nothing(world: &mut impl World) -> Told {
    world.create(Kind::Template, own_template(&["switch", "off"], None)).await?;
    levels(world, &[&["mine"]]).await?;
    let home = database(world).await?;
    lose_the_network(world, &home).await?;
    nothing_released(world, 900).await
}

/// A pod of this command that nobody reads back, and that a person may vouch for; its node is fenced by nothing else.
async fn by_word(world: &mut impl World, command: &[&str]) -> Told {
    let mut mine = own_template(command, None);
    mine["spec"]["proves"] = json!({ "class": "Power", "withoutReadBack": true });
    // How long a command takes that does nothing, and how it ends; whoever switches off is told by its command.
    let idle = json!({ "cluster.palisade.dev/runs-for": "3", "cluster.palisade.dev/exit-code": "0" });
    mine["spec"]["podTemplate"]["metadata"] = json!({ "annotations": idle });
    world.create(Kind::Template, mine).await?;
    let off = json!({ "name": "mine", "template": "mine" });
    let on = json!({ "name": "back", "template": "bmc", "action": "SwitchOn" });
    let levels = json!([{ "name": "by-word", "methods": [off, on] }]);
    world.patch(Kind::Config, "bare-metal", json!({ "spec": { "powerManagement": { "levels": levels } } })).await
}

/// What the policy vouches for.
async fn vouch(world: &mut impl World, templates: &[&str]) -> Told {
    let named = json!({ "spec": { "declaredPower": templates } });
    world.patch(Kind::Policy, palisade_api::names::POLICY_NAME, named).await
}

/// Why an object cannot be used; empty if it can.
fn refused(world: &dyn Look, kind: Kind, name: &str) -> String {
    let object = world.get(kind, name).unwrap_or_default();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let against = |condition: &&Value| condition["type"] == "Accepted" && condition["status"] == "False";
    let said = conditions.iter().find(against).and_then(|condition| condition["message"].as_str());
    said.unwrap_or_default().to_owned()
}

/// A user's own pod switches the machine off. Nobody can read that back, and the policy names its template: the database moves.
pub async fn own_pod_that_the_policy_trusts(world: &mut impl World) -> Told {
    by_word(world, &["switch", "off"]).await?;
    vouch(world, &["mine"]).await?;
    let home = database(world).await?;
    lose_the_network(world, &home).await?;
    moved(world, &home, 300).await?;
    let fence = world.get(Kind::Fence, &home).unwrap_or_default();
    let proof = &fence["status"]["proofs"][0];
    expect(
        proof["class"] == "Confirmed" && proof["source"] == "mine",
        "it counts as a person's word, by the pod's name",
    )?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await?;
    expect(world.writers_of(super::DATA).iter().all(|node| *node != home), "the old node writes no more")
}

/// The same pod, which no policy names: nothing is called and nothing is released, and config and template say why. When somebody
/// vouches for it, the very fence that was held goes on.
pub async fn own_pod_without_permission(world: &mut impl World) -> Told {
    by_word(world, &["switch", "off"]).await?;
    let home = database(world).await?;
    let why = |world: &dyn Look| {
        let said = [refused(world, Kind::Config, "bare-metal"), refused(world, Kind::Template, "mine")];
        said.iter().all(|said| said.contains("add `mine` to spec.declaredPower"))
    };
    world.run_until(60, "config and template say what is missing", why).await?;
    lose_the_network(world, &home).await?;
    nothing_released(world, 300).await?;
    expect(world.power_of(&home) == Power::On && world.list(Kind::Job).is_empty(), "no pod was called")?;
    vouch(world, &["mine"]).await?;
    moved(world, &home, 900).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// The policy vouches for a pod that says success and does nothing. The machine has only lost the API: its kubelet answers its port,
/// so nothing is released. When it comes back it keeps its database, and is let in.
pub async fn own_pod_is_trusted_and_the_node_lives(world: &mut impl World) -> Told {
    by_word(world, &["true"]).await?;
    vouch(world, &["mine"]).await?;
    let home = database(world).await?;
    let uid = world.uid_of("db-0");
    world.cut(&home, Link::Api).await?;
    let heard = |world: &dyn Look| {
        let fence = world.get(Kind::Fence, &home).unwrap_or_default();
        fence["status"]["message"].as_str().is_some_and(|said| said.contains("the node's kubelet answers"))
    };
    world.run_until(240, "the fence says that the kubelet answers", heard).await?;
    // Not so long that Kubernetes itself marks the pod.
    nothing_released(world, 60).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 900).await?;
    expect(world.uid_of("db-0") == uid && world.node_of("db-0") == home, "it never left")?;
    super::one_writer(world).await
}

/// The BMC refuses to switch off, and the next level is a pod for which the policy vouches, and which does nothing. The node is silent in
/// every way, but its BMC says that it is on: nothing is released. When the BMC is mended, the database moves.
pub async fn own_pod_is_trusted_and_the_bmc_says_on(world: &mut impl World) -> Told {
    by_word(world, &["true"]).await?;
    vouch(world, &["mine"]).await?;
    levels(world, &[&["bmc"], &["mine"]]).await?;
    let home = database(world).await?;
    world.bmc(&home, Bmc::Refuses).await?;
    lose_the_network(world, &home).await?;
    let heard = |world: &dyn Look| {
        let fence = world.get(Kind::Fence, &home).unwrap_or_default();
        fence["status"]["message"].as_str().is_some_and(|said| said.contains("bmc says that the machine is on"))
    };
    world.run_until(400, "the fence says that the BMC says on", heard).await?;
    nothing_released(world, 200).await?;
    world.bmc(&home, Bmc::Honest).await?;
    moved(world, &home, 900).await?;
    give_it_back(world, &home).await?;
    clean(world, &home, 900).await.map(drop)
}

/// A trusted pod has switched the machine off, and somebody switches it on again at once, while its database is being released.
/// Whether it moves or stays, nobody writes beside it, and the node returns clean.
pub async fn own_pod_is_trusted_and_the_node_comes_back(world: &mut impl World) -> Told {
    by_word(world, &["switch", "off"]).await?;
    vouch(world, &["mine"]).await?;
    let home = database(world).await?;
    lose_the_network(world, &home).await?;
    super::comes_to(world, &home, palisade_api::fence::FencePhase::Isolated).await?;
    give_it_back(world, &home).await?;
    world.outside_on(&home).await?;
    clean(world, &home, 1200).await?;
    world.run_until(300, "db-0 is ready", |world| world.is_ready("db-0")).await?;
    super::one_writer(world).await
}

/// The operator dies while a trusted pod is at work. The next one did not watch the node meanwhile, so it has the pod called again.
pub async fn own_pod_is_trusted_and_the_operator_dies(world: &mut impl World) -> Told {
    by_word(world, &["switch", "off"]).await?;
    vouch(world, &["mine"]).await?;
    let home = database(world).await?;
    lose_the_network(world, &home).await?;
    world.run_until(120, "the pod runs", |world| !world.list(Kind::Job).is_empty()).await?;
    world.operator_crash(super::FIRST).await?;
    world.operator_start(super::FIRST).await?;
    let left = |world: &dyn Look| world.has_left("db-0", &home);
    let jobs = jobs_until(world, 900, "db-0 runs on another node", left).await?;
    expect(jobs > 1, "it was called again")?;
    give_it_back(world, &home).await?;
    clean(world, &home, 1200).await.map(drop)
}

/// "(first AND second) OR power": the second of two agents in one level fails, so the level has, and the next one is power.
pub async fn both_or_else_power(world: &mut impl World) -> Told {
    world.create(Kind::Template, agent_template(world, "first", Some("bmc"))).await?;
    let mut second = agent_template(world, "second", None);
    second["spec"]["parameters"] = json!({ "ip": "bmc-nowhere" });
    world.create(Kind::Template, second).await?;
    levels(world, &[&["first", "second"], &["bmc"]]).await?;
    let home = database(world).await?;
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await
}
