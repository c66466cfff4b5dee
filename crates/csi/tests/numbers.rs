//! Field numbers, against bytes that were written down by hand from csi.proto: a number that slips would be found by no
//! test in which both sides are ours.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use std::collections::BTreeMap;

use palisade_csi::messages::controller::{
    CreateVolumeRequest, GetCapacityResponse, ListVolumesResponse, VolumeEntry, VolumeStatus,
};
use palisade_csi::messages::identity::ProbeResponse;
use palisade_csi::messages::node::{NodePublishVolumeRequest, NodeStageVolumeRequest};
use palisade_csi::messages::registration::RegistrationStatus;
use palisade_csi::messages::volume::{CapacityRange, Mode, Volume, VolumeCapability};
use prost::Message;

/// The key of a field that is a string, a message or a map.
const fn long(number: u8) -> u8 {
    number << 3 | 2
}

/// The key of a field that is a number or a flag.
const fn short(number: u8) -> u8 {
    number << 3
}

fn text(value: &str) -> String {
    value.to_owned()
}

fn one(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(text(key), text(value))])
}

#[test]
fn a_volume_to_make() {
    let request = CreateVolumeRequest {
        name: text("a"),
        capacity_range: Some(CapacityRange { required_bytes: 1, limit_bytes: 2 }),
        volume_capabilities: vec![VolumeCapability::mount(Mode::MultiNodeMultiWriter)],
        parameters: one("p", "q"),
        secrets: one("s", "t"),
        mutable_parameters: one("m", "n"),
        ..CreateVolumeRequest::default()
    };
    let pair = |key, value| [long(1), 1, key, long(2), 1, value];
    let mut bytes = vec![long(1), 1, b'a', long(2), 4, short(1), 1, short(2), 2];
    // An empty MountVolume is field 2 of the capability, the mode is field 3 and in it field 1.
    bytes.extend([long(3), 6, long(2), 0, long(3), 2, short(1), 5]);
    for (number, key, value) in [(4, b'p', b'q'), (5, b's', b't'), (8, b'm', b'n')] {
        bytes.extend([long(number), 6]);
        bytes.extend(pair(key, value));
    }
    assert_eq!(request.encode_to_vec(), bytes);
}

#[test]
fn a_volume_for_a_workload() {
    let request = NodePublishVolumeRequest {
        volume_id: text("v"),
        staging_target_path: text("s"),
        target_path: text("t"),
        readonly: true,
        ..NodePublishVolumeRequest::default()
    };
    let bytes = [long(1), 1, b'v', long(3), 1, b's', long(4), 1, b't', short(6), 1];
    assert_eq!(request.encode_to_vec(), bytes);
    let request = NodeStageVolumeRequest {
        volume_id: text("v"),
        staging_target_path: text("s"),
        volume_capability: Some(VolumeCapability::default()),
        ..NodeStageVolumeRequest::default()
    };
    assert_eq!(request.encode_to_vec(), [long(1), 1, b'v', long(3), 1, b's', long(4), 0]);
}

#[test]
fn a_list_with_nodes() {
    let reply = ListVolumesResponse {
        entries: vec![VolumeEntry {
            volume: Some(Volume { capacity_bytes: 7, volume_id: text("v"), ..Volume::default() }),
            status: Some(VolumeStatus { published_node_ids: vec![text("n")] }),
        }],
        next_token: text("x"),
    };
    let volume = [long(1), 5, short(1), 7, long(2), 1, b'v'];
    let status = [long(2), 3, long(1), 1, b'n'];
    let mut bytes = vec![long(1), 12];
    bytes.extend(volume);
    bytes.extend(status);
    bytes.extend([long(2), 1, b'x']);
    assert_eq!(reply.encode_to_vec(), bytes);
}

#[test]
fn wrapped_values() {
    let ready = ProbeResponse { ready: Some(true) };
    assert_eq!(ready.encode_to_vec(), [long(1), 2, short(1), 1]);
    let room = GetCapacityResponse { available_capacity: 3, maximum_volume_size: Some(4), minimum_volume_size: None };
    assert_eq!(room.encode_to_vec(), [short(1), 3, long(2), 2, short(1), 4]);
}

#[test]
fn what_came_of_a_registration() {
    let status = RegistrationStatus { plugin_registered: true, error: text("e") };
    assert_eq!(status.encode_to_vec(), [short(1), 1, long(2), 1, b'e']);
}
