//! What the controller promises: one node at a time, the same again is nothing new, and the codes of the specification.

use palisade_csi::Code;
use palisade_csi::messages::controller::{
    ControllerPublishVolumeRequest, CreateVolumeRequest, GetCapacityRequest, ListVolumesRequest,
    ValidateVolumeCapabilitiesRequest,
};
use palisade_csi::messages::volume::{
    AccessType, BlockVolume, CapacityRange, Mode, VolumeCapability, VolumeContentSource,
};
use palisade_san::What;

use crate::world::{World, create, delete, publish, publish_as, unpublish};

#[tokio::test]
async fn a_volume_is_made_once_per_name() {
    let world = World::new().await;
    let first = world.ask(create("pvc-1")).await.unwrap();
    assert_eq!(world.ask(create("pvc-1")).await.unwrap(), first);
    assert_eq!(first.volume.as_ref().unwrap().volume_id, "pvc-1");
    assert_eq!(first.volume.unwrap().capacity_bytes, 1 << 20);
    assert!(world.san().join("volumes/pvc-1").is_dir());
    let larger = CapacityRange { required_bytes: 2 << 20, limit_bytes: 0 };
    let (code, _) = world.refused(CreateVolumeRequest { capacity_range: Some(larger), ..create("pvc-1") }).await;
    assert_eq!(code, Code::AlreadyExists);
    assert_eq!(world.history("pvc-1"), [(What::Created, None)]);
}

#[tokio::test]
async fn names_that_look_alike_are_two_volumes() {
    let world = World::new().await;
    let (one, two) = (world.volume("a/b").await, world.volume("a b").await);
    assert_eq!((one.as_str(), two.as_str()), ("a-b", "a-b-2"));
    assert_eq!(world.volume("a b").await, two);
}

#[tokio::test]
async fn what_cannot_be_made_is_refused_with_its_own_code() {
    let world = World::new().await;
    let range = |required_bytes, limit_bytes| CreateVolumeRequest {
        capacity_range: Some(CapacityRange { required_bytes, limit_bytes }),
        ..create("v")
    };
    let block = VolumeCapability {
        access_type: Some(AccessType::Block(BlockVolume {})),
        ..VolumeCapability::mount(Mode::SingleNodeWriter)
    };
    let table = [
        (CreateVolumeRequest { name: String::new(), ..create("v") }, Code::InvalidArgument),
        (CreateVolumeRequest { volume_capabilities: vec![], ..create("v") }, Code::InvalidArgument),
        (CreateVolumeRequest { volume_capabilities: vec![block], ..create("v") }, Code::InvalidArgument),
        (
            CreateVolumeRequest { volume_content_source: Some(VolumeContentSource::default()), ..create("v") },
            Code::InvalidArgument,
        ),
        (range(2, 1), Code::InvalidArgument),
        (range(1 << 50, 0), Code::OutOfRange),
    ];
    for (request, expected) in table {
        let printed = format!("{request:?}");
        assert_eq!(world.refused(request).await.0, expected, "{printed}");
    }
    assert!(palisade_san::published(&world.san()).unwrap().is_empty());
}

#[tokio::test]
async fn a_volume_for_one_node_is_published_to_one_node() {
    let world = World::new().await;
    let volume = world.volume("v").await;
    world.publish(&volume, "n1").await;
    world.publish(&volume, "n1").await;
    let (code, why) = world.refused(publish(&volume, "n2")).await;
    assert_eq!(code, Code::FailedPrecondition);
    assert!(why.contains("n1"), "who has it should be said: {why}");
    assert_eq!(world.holders("v"), ["n1"]);
    world.unpublish(&volume, "n1").await;
    world.unpublish(&volume, "n1").await;
    world.publish(&volume, "n2").await;
    assert_eq!(world.holders("v"), ["n2"]);
    let node = |name: &str| Some(name.to_owned());
    let expected = [
        (What::Created, None),
        (What::Published, node("n1")),
        (What::Refused, node("n2")),
        (What::Unpublished, node("n1")),
        (What::Published, node("n2")),
    ];
    assert_eq!(world.history("v"), expected);
}

#[tokio::test]
async fn another_way_on_the_same_node_is_already_exists() {
    let world = World::new().await;
    let volume = world.volume("v").await;
    world.publish(&volume, "n1").await;
    let reading = ControllerPublishVolumeRequest { readonly: true, ..publish(&volume, "n1") };
    assert_eq!(world.refused(reading).await.0, Code::AlreadyExists);
    assert_eq!(world.refused(publish_as(&volume, "n1", Mode::MultiNodeMultiWriter)).await.0, Code::AlreadyExists);
}

#[tokio::test]
async fn a_volume_for_many_nodes_is_published_to_many() {
    let world = World::new().await;
    let volume = world.volume("v").await;
    for node in ["n1", "n2"] {
        world.ask(publish_as(&volume, node, Mode::MultiNodeMultiWriter)).await.unwrap();
    }
    assert_eq!(world.holders("v"), ["n1", "n2"]);
    // Without a node, all are meant.
    world.unpublish(&volume, "").await;
    assert!(world.holders("v").is_empty());
}

#[tokio::test]
async fn who_is_not_there_is_not_found_and_who_need_not_be_is_fine() {
    let world = World::new().await;
    let volume = world.volume("v").await;
    for (volume, node) in [("nothing", "n1"), ("../state/v", "n1"), (&volume, "n9"), (&volume, "../nodes/n1")] {
        assert_eq!(world.refused(publish(volume, node)).await.0, Code::NotFound, "{volume} {node}");
        world.unpublish(volume, node).await;
    }
    world.ask(delete("nothing")).await.unwrap();
    world.ask(delete("../state")).await.unwrap();
    for request in [publish("", "n1"), publish(&volume, "")] {
        assert_eq!(world.refused(request).await.0, Code::InvalidArgument);
    }
    let nothing_said = ControllerPublishVolumeRequest { volume_capability: None, ..publish(&volume, "n1") };
    assert_eq!(world.refused(nothing_said).await.0, Code::InvalidArgument);
    assert_eq!(
        (world.refused(unpublish("", "n1")).await.0, world.refused(delete("")).await.0),
        (Code::InvalidArgument, Code::InvalidArgument)
    );
}

#[tokio::test]
async fn a_volume_in_use_is_not_destroyed() {
    let world = World::new().await;
    let volume = world.volume("v").await;
    std::fs::write(world.san().join("volumes/v/data"), "precious").unwrap();
    world.publish(&volume, "n1").await;
    assert_eq!(world.refused(delete(&volume)).await.0, Code::FailedPrecondition);
    assert!(world.san().join("volumes/v/data").exists());
    world.unpublish(&volume, "n1").await;
    world.ask(delete(&volume)).await.unwrap();
    world.ask(delete(&volume)).await.unwrap();
    assert!(!world.san().join("volumes/v").exists());
    assert_eq!(world.history("v").last(), Some(&(What::Deleted, None)));
}

#[tokio::test]
async fn volumes_are_listed_in_pages_with_the_nodes_that_have_them() {
    let world = World::new().await;
    for name in ["c", "a", "b"] {
        world.volume(name).await;
    }
    world.publish("b", "n1").await;
    let mut request = ListVolumesRequest { max_entries: 2, starting_token: String::new() };
    let mut seen = Vec::new();
    loop {
        let page = world.ask(request.clone()).await.unwrap();
        for entry in page.entries {
            seen.push((entry.volume.unwrap().volume_id, entry.status.unwrap().published_node_ids.join(" ")));
        }
        if page.next_token.is_empty() {
            break;
        }
        request.starting_token = page.next_token;
    }
    let expected = [("a", ""), ("b", "n1"), ("c", "")].map(|(id, nodes)| (id.to_owned(), nodes.to_owned()));
    assert_eq!(seen, expected);
    request.starting_token = "what?".to_owned();
    assert_eq!(world.refused(request).await.0, Code::Aborted);
}

#[tokio::test]
async fn room_is_counted_and_uses_are_confirmed_or_not() {
    let world = World::new().await;
    let before = world.ask(GetCapacityRequest::default()).await.unwrap().available_capacity;
    let volume = world.volume("v").await;
    let after = world.ask(GetCapacityRequest::default()).await.unwrap().available_capacity;
    assert_eq!(before - after, 1 << 20);
    let use_as = |volume: &str, mode| ValidateVolumeCapabilitiesRequest {
        volume_id: volume.to_owned(),
        volume_capabilities: vec![VolumeCapability::mount(mode)],
        ..ValidateVolumeCapabilitiesRequest::default()
    };
    assert!(world.ask(use_as(&volume, Mode::SingleNodeWriter)).await.unwrap().confirmed.is_some());
    let odd = world.ask(use_as(&volume, Mode::MultiNodeSingleWriter)).await.unwrap();
    assert_eq!(odd.confirmed, None);
    assert_eq!(odd.message, "access mode MultiNodeSingleWriter is not offered");
    assert_eq!(world.refused(use_as("nothing", Mode::SingleNodeWriter)).await.0, Code::NotFound);
}
