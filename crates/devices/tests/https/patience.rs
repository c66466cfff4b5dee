//! How long we wait, and for how much.

use std::net::TcpListener;
use std::time::Duration;

use bytes::Bytes;
use palisade_devices::Transport;
use palisade_devices::https::Https;
use tokio::time::Instant;

use crate::certificates::Authority;
use crate::server::{Manner, Server};
use crate::{LIMITS, get, why};

/// Less than all deadlines together.
const SOON: Duration = Duration::from_secs(8);

async fn said_by(manner: Manner) -> String {
    let authority = Authority::new();
    let server = Server::up(&authority.for_loopback(), manner).await;
    let began = Instant::now();
    let said = why(&server.base(), &authority.trust()).await;
    assert!(began.elapsed() < SOON, "{manner:?} took {:?}", began.elapsed());
    said
}

#[tokio::test]
async fn a_server_that_says_nothing_costs_seconds() {
    let said = said_by(Manner::Silent).await;
    assert!(said.contains("took the connection and then said nothing for 2s"), "{said}");
}

#[tokio::test]
async fn a_request_that_is_not_answered_costs_seconds() {
    let said = said_by(Manner::Mute).await;
    assert!(said.contains("no whole answer within 2s"), "{said}");
}

#[tokio::test]
async fn an_answer_that_drips_is_given_up() {
    let said = said_by(Manner::Drips).await;
    assert!(said.contains("no whole answer within 2s"), "{said}");
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let said = said_by(Manner::Floods).await;
    assert!(said.contains("longer than 1048576 bytes"), "{said}");
}

#[tokio::test]
async fn what_does_not_speak_tls_is_told_from_what_is_not_trusted() {
    let said = said_by(Manner::Plain).await;
    assert!(said.contains("does not speak TLS") && said.contains("`ipport`"), "{said}");
}

#[tokio::test]
async fn a_port_where_nothing_listens_refuses() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let said = why(&format!("https://127.0.0.1:{port}"), &Authority::new().trust()).await;
    assert!(said.contains(&format!("127.0.0.1:{port} refuses the connection")) && said.contains("`ipport`"), "{said}");
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_said_to_be_one() {
    let said = why("https://bmc.invalid", &Authority::new().trust()).await;
    assert!(said.contains("the name bmc.invalid cannot be resolved"), "{said}");
}

#[tokio::test]
async fn nothing_is_sent_without_tls() {
    let said = why("http://127.0.0.1", &Authority::new().trust()).await;
    assert!(said.contains("is not https"), "{said}");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let authority = Authority::new();
    let server = Server::up(&authority.for_loopback(), Manner::Redirects).await;
    assert_eq!(get(&server.base(), &authority.trust()).await.unwrap().status().as_u16(), 308);
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let authority = Authority::new();
    let server = Server::up(&authority.for_loopback(), Manner::Says("{}")).await;
    let channel = Https::within(LIMITS).to(&authority.trust()).unwrap();
    let ask = || http::Request::get(format!("{}/a", server.base())).body(Bytes::new()).unwrap();
    for _ in 0..3 {
        channel.send(ask()).await.unwrap();
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 3));
}

/// Some devices close every connection after one answer, and do not say so.
#[tokio::test]
async fn a_command_after_a_connection_was_closed_is_sent_once() {
    let authority = Authority::new();
    let server = Server::up(&authority.for_loopback(), Manner::Hangs("{}")).await;
    let channel = Https::within(LIMITS).to(&authority.trust()).unwrap();
    let uri: http::Uri = format!("{}/reset", server.base()).parse().unwrap();
    for _ in 0..3 {
        channel.send(http::Request::get(uri.clone()).body(Bytes::new()).unwrap()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        channel.open(&uri).await.unwrap();
        channel.send(http::Request::post(uri.clone()).body(Bytes::from("{}")).unwrap()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let posts = server.requests().iter().filter(|asked| asked.starts_with("POST")).count();
    assert_eq!(posts, 3);
}
