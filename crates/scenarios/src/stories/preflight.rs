//! Preflight: devices that are broken while nobody needs them.

use palisade_api::conditions::DEVICES_HEALTHY;
use serde_json::{Value, json};

use super::{database, expect};
use crate::world::{Bmc, Broken, Kind, Look, Told, World};

/// How often devices are asked in these stories.
const INTERVAL: u64 = 60;
/// An answer that does not come is waited for, and what is said is said a moment later.
const AND_A_MOMENT: u64 = 45;

/// The BMC of a healthy node takes every request and says nothing. That is said before anybody needs it, and nothing is done about
/// the node; when the BMC is back, that is said, too.
pub async fn bmc_goes_silent_on_a_healthy_node(world: &mut impl World) -> Told {
    let home = checked_often(world).await?;
    world.bmc(&home, Bmc::Silent).await?;
    let fails = |world: &dyn Look| says(world, "False", "NoAnswer", &[&home]);
    world.run_until(INTERVAL + AND_A_MOMENT, "the template says which device does not answer", fails).await?;
    expect(world.was_told("DeviceCheckFailed", &home), "the node has an Event")?;
    let status = world.get(Kind::Template, "bmc").unwrap_or_default()["status"].clone();
    expect(status["failing"] == 1 && status["checked"] == world.nodes().len(), "it counts")?;
    let nothing = |world: &dyn Look| world.fence_of(&home).is_none() && world.node_is_clean(&home);
    world.hold_for(120, "nothing is done about the node", nothing).await?;
    world.bmc(&home, Bmc::Honest).await?;
    world.run_until(2 * INTERVAL + AND_A_MOMENT, "all is well again", all_good).await?;
    expect(world.was_told("DeviceCheckGood", &home), "the node has an Event that it is over")?;
    expect(world.commands_to(&home).is_empty(), "nobody was told to switch anything")
}

/// Somebody has mixed up two addresses: each node's BMC is the other's, and takes the login that goes with it. Both are found before
/// either node fails; a fence would have refused to use them.
pub async fn addresses_of_two_nodes_are_swapped(world: &mut impl World) -> Told {
    let home = checked_often(world).await?;
    let other = world.nodes().into_iter().find(|node| *node != home).unwrap_or_default();
    swap(world, &home, &other).await?;
    let found = |world: &dyn Look| says(world, "False", "WrongMachine", &[&home, &other]);
    world.run_until(2 * INTERVAL + AND_A_MOMENT, "both are found", found).await?;
    for node in [&home, &other] {
        expect(world.was_told("DeviceCheckFailed", node), "each node has an Event")?;
    }
    let nothing = |world: &dyn Look| world.list(Kind::Fence).is_empty();
    world.hold_for(120, "nothing is done about them", nothing).await?;
    swap(world, &home, &other).await?;
    world.run_until(3 * INTERVAL + AND_A_MOMENT, "all is well again", all_good).await?;
    expect(world.commands_to(&home).is_empty() && world.commands_to(&other).is_empty(), "nothing was switched")
}

/// A BMC says off while its machine runs. Nobody needs it yet, and it cannot be right.
pub async fn bmc_says_off_of_a_healthy_node(world: &mut impl World) -> Told {
    let home = checked_often(world).await?;
    world.bmc(&home, Bmc::SaysOff).await?;
    let found = |world: &dyn Look| says(world, "False", "OffWhileReady", &[&home]);
    world.run_until(INTERVAL + AND_A_MOMENT, "the template says so", found).await?;
    expect(world.fence_of(&home).is_none() && world.node_is_ready(&home), "nothing is done about the node")
}

/// A database, and devices that are asked often and were all found good.
async fn checked_often(world: &mut impl World) -> Told<String> {
    let home = database(world).await?;
    let often = json!({ "spec": { "checkInterval": format!("{INTERVAL}s") } });
    world.patch(Kind::Template, "bmc", often).await?;
    world.run_until(2 * INTERVAL + AND_A_MOMENT, "all devices are found good", all_good).await?;
    Ok(home)
}

fn all_good(world: &dyn Look) -> bool {
    says(world, "True", "AllGood", &[])
}

/// Whether the template says this of its devices, and names these nodes.
fn says(world: &dyn Look, status: &str, reason: &str, nodes: &[&str]) -> bool {
    let template = world.get(Kind::Template, "bmc").unwrap_or_default();
    let conditions = template.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        let message = one["message"].as_str().unwrap_or_default();
        let names = nodes.iter().all(|node| message.contains(&format!("the device of {node} ")));
        one["type"] == DEVICES_HEALTHY && one["status"] == status && one["reason"] == reason && names
    })
}

/// Gives each of two nodes the other's address and login.
async fn swap(world: &mut impl World, one: &str, other: &str) -> Told {
    let mut config = world.get(Kind::Config, "bare-metal").unwrap_or_default();
    let (first, second) = (address(world, &config, one), address(world, &config, other));
    let method = config.pointer_mut("/spec/powerManagement/levels/0/methods/0");
    let method = method.ok_or_else(|| Broken("the config has no method".to_owned()))?;
    method["perNode"][one] = json!({ "ip": second });
    method["perNode"][other] = json!({ "ip": first });
    let levels = config["spec"]["powerManagement"]["levels"].clone();
    world.patch(Kind::Config, "bare-metal", json!({ "spec": { "powerManagement": { "levels": levels } } })).await?;
    let secret = |node: &str| format!("bmc-{node}");
    let login =
        |world: &dyn Look, node: &str| world.get(Kind::Secret, &secret(node)).unwrap_or_default()["data"].clone();
    let (first, second) = (login(world, one), login(world, other));
    world.patch(Kind::Secret, &secret(one), json!({ "data": second })).await?;
    world.patch(Kind::Secret, &secret(other), json!({ "data": first })).await
}

/// Where a node's BMC is: by its own line in the config, or by the template.
fn address(world: &dyn Look, config: &Value, node: &str) -> String {
    let own = format!("/spec/powerManagement/levels/0/methods/0/perNode/{node}/ip");
    let template = world.get(Kind::Template, "bmc").unwrap_or_default();
    let shared = template.pointer("/spec/parameters/ip").and_then(Value::as_str);
    let found = config.pointer(&own).and_then(Value::as_str).or(shared).unwrap_or_default();
    found.replace("{node}", node)
}
