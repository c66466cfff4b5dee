//! Every example of docs/devices.md is applied, and accepted by the operator itself, for a node that it is about.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use palisade_api::names::POLICY_NAME;
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::look::Look;
use palisade_scenarios::world::{Kind, Needs, World};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../docs/devices.md");

/// The node of this world that stands for every node of the page.
const NODE: &str = "n1";

/// The objects in all examples of the page, in order.
fn examples() -> Vec<Value> {
    let page =
        ["worker-1", "worker-5", "worker-7"].into_iter().fold(PAGE.to_owned(), |page, name| page.replace(name, NODE));
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let documents = blocks.flat_map(|block| block.split("---\n"));
    documents.map(|text| serde_saphyr::from_str::<Value>(text).unwrap_or_else(|why| panic!("{why}\n{text}"))).collect()
}

fn kind(object: &Value) -> Option<Kind> {
    match object["kind"].as_str() {
        Some("FenceTemplate") => Some(Kind::Template),
        Some("FenceConfig") => Some(Kind::Config),
        Some("FencePolicy") => Some(Kind::Policy),
        // The API of this world keeps Secrets; stories have no verb for them.
        Some("Secret") => None,
        other => panic!("{other:?} is on the page, and this test does not apply it"),
    }
}

/// Nothing, or what is said against it.
fn against(world: &dyn Look, kind: Kind, name: &str) -> Option<String> {
    let object = world.get(kind, name).unwrap_or_default();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let said = conditions.into_iter().find(|condition| condition["type"] == "Accepted").unwrap_or_default();
    let used = kind != Kind::Config || object["status"]["nodes"] == 1;
    (said["status"] != "True" || !used).then(|| format!("{name}: {}", object["status"]))
}

#[tokio::test(start_paused = true)]
async fn every_example_of_the_page_is_accepted() {
    let mut world = Embedded::for_story(&Needs { nodes: 4, zones: 1 }, 1).await;
    world.delete(Kind::Config, "bare-metal").await.unwrap();
    let examples = examples();
    for object in &examples {
        match kind(object) {
            // There is one from the installation on.
            Some(Kind::Policy) => {
                world.patch(Kind::Policy, POLICY_NAME, json!({ "spec": object["spec"] })).await.unwrap();
            }
            Some(kind) => world.create(kind, object.clone()).await.unwrap_or_else(|why| panic!("{why}\n{object}")),
            None => {}
        }
    }
    world.operator_start("palisade-0").await.unwrap();
    let named = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    let of = |wanted: Kind| examples.iter().filter(move |object| kind(object) == Some(wanted)).collect::<Vec<_>>();
    let (configs, templates) = (of(Kind::Config), of(Kind::Template));
    assert!(configs.len() >= 8 && templates.len() >= 10, "{} configs, {} templates", configs.len(), templates.len());
    for config in configs {
        let (name, labels) =
            (named(config), config["spec"]["nodeSelector"]["matchLabels"].as_object().unwrap().clone());
        // Labels of nodes are looked at every ten minutes.
        world.patch(Kind::Node, NODE, json!({ "metadata": { "labels": labels } })).await.unwrap();
        let so = |world: &dyn Look| against(world, Kind::Config, &name).is_none();
        let done = world.run_until(700, "the config is accepted, and used for the node", so).await;
        assert!(done.is_ok(), "{:?}", world.get(Kind::Config, &name));
        let none: serde_json::Map<String, Value> = labels.into_iter().map(|(key, _)| (key, Value::Null)).collect();
        world.patch(Kind::Node, NODE, json!({ "metadata": { "labels": none } })).await.unwrap();
    }
    for template in templates {
        let name = named(template);
        let so = |world: &dyn Look| against(world, Kind::Template, &name).is_none();
        let done = world.run_until(60, "the template is accepted", so).await;
        assert!(done.is_ok(), "{:?}", world.get(Kind::Template, &name));
    }
}
