//! Whom we trust.

use palisade_devices::https::{Fingerprint, Trust};

use crate::certificates::{Authority, self_signed};
use crate::server::{Manner, Server};
use crate::{get, why};

const HELLO: Manner = Manner::Says("{}");

#[tokio::test]
async fn a_certificate_of_the_authority_that_was_given_is_trusted() {
    let authority = Authority::new();
    let server = Server::up(&authority.for_loopback(), HELLO).await;
    let answer = get(&server.base(), &authority.trust()).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (200, b"{}".as_ref()));
    let asked = server.requests().remove(0);
    assert!(asked.starts_with("GET /redfish/v1 HTTP/1.1\r\n"), "{asked}");
    let host = server.base().replace("https://", "host: ");
    assert!(asked.to_lowercase().contains(&host) && asked.contains("palisade/"), "{asked}");
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_and_nothing_is_sent() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let shown = theirs.for_loopback();
    let server = Server::up(&shown, HELLO).await;
    let said = why(&server.base(), &ours.trust()).await;
    let seen = Fingerprint::of(&shown.certificate).to_string();
    for word in ["not trusted", "nobody whom we trust has signed it", "`ca`", "`fingerprint`", &seen] {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn without_a_word_about_it_the_system_decides_and_it_knows_no_lab() {
    let server = Server::up(&Authority::new().for_loopback(), HELLO).await;
    match palisade_devices::https::Https::within(crate::LIMITS).to(&Trust::System) {
        Ok(_) => assert!(why(&server.base(), &Trust::System).await.contains("nobody whom we trust has signed it")),
        // A container without a bundle of authorities.
        Err(bad) => assert!(bad.0.contains("no authorities of its own"), "{bad}"),
    }
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_certificate_of_long_ago_is_refused() {
    let authority = Authority::new();
    let server = Server::up(&authority.expired(), HELLO).await;
    let said = why(&server.base(), &authority.trust()).await;
    assert!(said.contains("it has expired; renew it at the device"), "{said}");
}

#[tokio::test]
async fn a_certificate_for_a_name_does_not_count_for_an_address() {
    let authority = Authority::new();
    let server = Server::up(&authority.for_name("bmc-1.example"), HELLO).await;
    let said = why(&server.base(), &authority.trust()).await;
    assert!(said.contains("for another name") && said.contains("bmc-1.example"), "{said}");
}

#[tokio::test]
async fn a_pinned_certificate_is_trusted_whatever_its_name_and_date() {
    let authority = Authority::new();
    for shown in [self_signed(), authority.expired()] {
        let server = Server::up(&shown, HELLO).await;
        assert!(get(&server.base(), &shown.pinned()).await.is_ok());
    }
}

#[tokio::test]
async fn another_certificate_than_the_pinned_one_is_refused_with_both_fingerprints() {
    let (wanted, shown) = (self_signed(), self_signed());
    let server = Server::up(&shown, HELLO).await;
    let said = why(&server.base(), &wanted.pinned()).await;
    for certificate in [&wanted.certificate, &shown.certificate] {
        assert!(said.contains(&Fingerprint::of(certificate).to_string()), "{said}");
    }
    assert!(said.contains("somebody stands between"), "{said}");
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_bmc_that_signed_its_own_is_trusted_by_that_very_certificate() {
    let shown = self_signed();
    let server = Server::up(&shown, HELLO).await;
    let trust = Trust::of(Some(&shown.pem), None, None).unwrap();
    assert!(get(&server.base(), &trust).await.is_ok());
    let other = Trust::of(Some(&self_signed().pem), None, None).unwrap();
    assert!(get(&server.base(), &other).await.is_err());
}

/// Whoever has only the certificate, which everybody can see, cannot sign with it.
#[tokio::test]
async fn a_copy_of_a_pinned_certificate_is_not_enough() {
    let (shown, thief) = (self_signed(), self_signed());
    let copied = crate::certificates::Shown { key: thief.key.clone_key(), pem: String::new(), ..shown };
    let trust = Trust::Pinned(Fingerprint::of(&copied.certificate));
    let server = Server::up(&copied, HELLO).await;
    assert!(get(&server.base(), &trust).await.is_err());
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn only_who_says_so_plainly_talks_to_anybody() {
    let server = Server::up(&self_signed(), HELLO).await;
    assert!(get(&server.base(), &Trust::of(None, None, Some("1")).unwrap()).await.is_ok());
}
