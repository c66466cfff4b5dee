//! BMCs: honest ones, and the others.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use palisade_cluster::{
    Cluster, Shape,
    machines::{
        bmc::{Behaviour, Fate},
        machine::{Power, Switch},
        redfish,
    },
};
use serde_json::Value;

use crate::world::{ask, power_state, reset, seconds};

#[tokio::test(start_paused = true)]
async fn an_honest_bmc_switches_its_machine_and_says_so() {
    let cluster = Cluster::up(&Shape::default()).await;
    assert_eq!(power_state(&cluster, "n1").await.unwrap(), "On");
    assert_eq!(reset(&cluster, "n1", "ForceOff").await.unwrap(), 204);
    assert_eq!(power_state(&cluster, "n1").await.unwrap(), "PoweringOff");
    cluster.run_for(seconds(2)).await;
    assert_eq!(power_state(&cluster, "n1").await.unwrap(), "Off");
    assert_eq!(cluster.power("n1"), Some(Power::Off));

    assert_eq!(reset(&cluster, "n1", "On").await.unwrap(), 204);
    assert_eq!(power_state(&cluster, "n1").await.unwrap(), "PoweringOn");
    cluster.run_for(seconds(5)).await;
    assert_eq!(power_state(&cluster, "n1").await.unwrap(), "On");
    assert_eq!(reset(&cluster, "n1", "Explode").await.unwrap(), 400);
    let told: Vec<Switch> = cluster.bmc("n1").log().iter().map(|(_, command)| command.switch).collect();
    assert_eq!(told, [Switch::ForceOff, Switch::On]);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_tells_which_machine_it_is_to_those_whom_it_knows() {
    let cluster = Cluster::up(&Shape::default()).await;
    let path = redfish::system_path("n1");
    let system: Value = serde_json::from_slice(ask(&cluster, "n1", &path, None).await.unwrap().body()).unwrap();
    assert_eq!(system["UUID"], cluster.node("n1").unwrap()["status"]["nodeInfo"]["systemUUID"]);

    let stranger = Request::get(format!("https://bmc-n1{path}")).body(Bytes::new()).unwrap();
    assert_eq!(cluster.bmcs().call(stranger).await.unwrap().status(), 401);
    let basic = Request::get(format!("https://bmc-n1{path}")).header("authorization", "Basic ZmVuY2U6c2VjcmV0LW4x");
    assert_eq!(cluster.bmcs().call(basic.body(Bytes::new()).unwrap()).await.unwrap().status(), 200);
    let root = Request::get("https://bmc-n1/redfish/v1/").body(Bytes::new()).unwrap();
    assert_eq!(cluster.bmcs().call(root).await.unwrap().status(), 200);
    let nobody = Request::get("https://bmc-n9/redfish/v1/").body(Bytes::new()).unwrap();
    assert!(cluster.bmcs().call(nobody).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn bmcs_that_lie_refuse_or_dawdle() {
    for (behaviour, code, said, truth, fate) in [
        (Behaviour::AcceptsOnly, Some(204), Some("On"), Power::On, Fate::Ignored),
        (Behaviour::SaysOff, Some(204), Some("Off"), Power::On, Fate::Ignored),
        (Behaviour::Refuses(503), Some(503), Some("On"), Power::On, Fate::Refused),
        (Behaviour::Silent, None, None, Power::On, Fate::Lost),
        (Behaviour::Slow(seconds(2)), Some(204), Some("Off"), Power::Off, Fate::Done),
        // The caller has long given up, and the machine goes off all the same.
        (Behaviour::Late(seconds(25)), None, None, Power::Off, Fate::Late),
        (Behaviour::LosesReply, None, Some("Off"), Power::Off, Fate::Done),
        (Behaviour::ShowsFor(seconds(25)), Some(204), Some("Off"), Power::On, Fate::Ignored),
        (Behaviour::ShowsFor(seconds(2)), Some(204), Some("On"), Power::On, Fate::Ignored),
        (Behaviour::Flaps(seconds(2)), Some(204), Some("On"), Power::On, Fate::Done),
    ] {
        let cluster = Cluster::up(&Shape::default()).await;
        let (_, user, password) = cluster.bmc("n1").login().unwrap();
        assert_eq!((user.as_str(), password.as_str()), ("fence", "secret-n1"));
        cluster.bmc("n1").set(behaviour.clone());
        let path = redfish::system_path("n1");
        let basic = |request: http::request::Builder| request.header("authorization", "Basic ZmVuY2U6c2VjcmV0LW4x");
        let off = basic(Request::post(format!("https://bmc-n1{path}/Actions/ComputerSystem.Reset")));
        let off = off.body(Bytes::from_static(br#"{"ResetType": "ForceOff"}"#)).unwrap();
        let answer = tokio::time::timeout(seconds(10), cluster.bmcs().call(off)).await.ok();
        assert_eq!(answer.map(|answer| answer.unwrap().status().as_u16()), code, "{behaviour:?}");
        cluster.run_for(seconds(20)).await;
        let read = basic(Request::get(format!("https://bmc-n1{path}"))).body(Bytes::new()).unwrap();
        let read = tokio::time::timeout(seconds(10), cluster.bmcs().call(read)).await.ok();
        let state =
            read.map(|answer| serde_json::from_slice::<Value>(answer.unwrap().body()).unwrap()["PowerState"].clone());
        assert_eq!(state, said.map(Value::from), "{behaviour:?}");
        assert_eq!(cluster.power("n1"), Some(truth), "{behaviour:?}");
        assert_eq!(cluster.bmc("n1").log()[0].1.fate, fate, "{behaviour:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bmc_goes_with_the_feed_and_comes_back_with_it() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.cut_feed("n1");
    assert!(power_state(&cluster, "n1").await.is_err());
    cluster.restore_feed("n1");
    assert_eq!(power_state(&cluster, "n1").await.unwrap(), "PoweringOn");
}

#[tokio::test(start_paused = true)]
async fn most_bmcs_cannot_tell_a_hibernating_machine_from_one_that_is_off() {
    let cluster = Cluster::up(&Shape::default()).await;
    let boot = cluster.boot("n1");
    cluster.hibernate("n1");
    assert_eq!(power_state(&cluster, "n1").await.unwrap(), "Off");
    cluster.bmc("n1").tells_hibernated(true);
    assert_eq!(power_state(&cluster, "n1").await.unwrap(), "Paused");
    assert_eq!(reset(&cluster, "n1", "ForceOff").await.unwrap(), 204);
    assert_eq!(reset(&cluster, "n1", "On").await.unwrap(), 204);
    cluster.run_for(Duration::from_secs(20)).await;
    assert_eq!(cluster.boot("n1"), boot, "off did not touch what was on its disk");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_machine_loses_its_memory_when_it_is_forced_off() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.suspend("n1");
    assert_eq!(power_state(&cluster, "n1").await.unwrap(), "Paused");
    reset(&cluster, "n1", "ForceOff").await.unwrap();
    assert_eq!(cluster.power("n1"), Some(Power::Off));
    assert_eq!(cluster.boot("n1"), None);
}
