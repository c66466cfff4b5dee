//! Who is let in, who is not, and what a tired administrator reads.

use std::sync::Arc;

use palisade_devices::ipmi::{BadLogin, Ciphers, Ipmi, Login, Privilege, Suite};
use palisade_devices::{Device, PowerState};

use crate::bmc::Bmc;
use crate::network::{BEFORE, IN_SESSION, Lossy, OPEN, RAKP_3, Way};
use crate::{device, login, refused, unknown};

async fn why_not(bmc: Bmc, login: Login) -> (String, Lossy) {
    let network = Lossy::good(bmc);
    let answer = Ipmi::new(Arc::new(network.clone()), login).state("").await;
    (refused(answer), network)
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_refused_and_ours_is_not_shown() {
    for suite in [Suite::Three, Suite::Seventeen] {
        let login = Login::new("fence", "wr0ng").unwrap().with_ciphers(Ciphers::Only(suite));
        let (said, network) = why_not(Bmc::default(), login).await;
        let words = "the BMC's answer does not prove that it knows the password of \"fence\": wrong password, or not the BMC \
                     that you mean";
        assert!(said.contains(words) && !said.contains("wr0ng"), "{said}");
        // The BMC is told that its proof was none, and gets none of ours.
        assert_eq!(network.bmc.lock().unwrap().record, ["wrong proof"]);
        assert_eq!((network.passed(Way::ToBmc, RAKP_3), network.passed(Way::ToBmc, IN_SESSION)), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_that_the_bmc_does_not_know_is_named() {
    let (said, _) = why_not(Bmc::default(), Login::new("nobody", "s3cret").unwrap()).await;
    assert!(said.contains("knows no user \"nobody\"") && said.contains("RAKP 2, status 0x0d"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_privilege_that_the_user_does_not_have_is_refused_at_either_place() {
    let (said, _) = why_not(Bmc { privilege: 2, ..Bmc::default() }, login()).await;
    assert!(said.contains("the user \"fence\" may not log in as OPERATOR"), "{said}");
    let (said, network) = why_not(Bmc { privilege: 2, strict_login: false, ..Bmc::default() }, login()).await;
    assert!(said.contains("this user may not act as OPERATOR"), "{said}");
    let left = network.bmc.lock().unwrap().open_sessions();
    assert_eq!((&network.bmc.lock().unwrap().record[..], left), (&["close"][..], 0));
    let reader = login().with_privilege(Privilege::User);
    let network = Lossy::good(Bmc { privilege: 2, ..Bmc::default() });
    assert_eq!(Ipmi::new(Arc::new(network), reader).state("").await, Ok(PowerState::On));
}

#[tokio::test(start_paused = true)]
async fn the_key_of_the_bmc_is_needed_where_it_has_one() {
    let with_kg = || Bmc { kg: b"\x01\x02\xab".to_vec(), ..Bmc::default() };
    let network = Lossy::good(with_kg());
    let right = login().with_kg("0102ab").unwrap();
    assert_eq!(Ipmi::new(Arc::new(network), right).state("").await, Ok(PowerState::On));

    let (said, _) = why_not(with_kg(), login()).await;
    assert!(said.contains("it has a key of its own (K_g); give it as `hexadecimal_kg`"), "{said}");
    let (said, _) = why_not(with_kg(), login().with_kg("0102ac").unwrap()).await;
    assert!(said.contains("it does not have this key (K_g)") && !said.contains("0102ac"), "{said}");
    let (said, _) = why_not(Bmc::default(), login().with_kg("0102ab").unwrap()).await;
    assert!(said.contains("remove `hexadecimal_kg`"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn the_best_suite_is_taken_and_the_other_where_it_is_not_there() {
    for (bmc, opens) in [
        (Bmc::default(), 1),
        (Bmc { suites: vec![3], ..Bmc::default() }, 2),
        // One that says nothing is asked twice.
        (Bmc { suites: vec![3], deaf_to: vec![17], ..Bmc::default() }, 3),
    ] {
        let network = Lossy::good(bmc);
        let device = device(&network);
        assert_eq!(device.state("").await, Ok(PowerState::On));
        assert_eq!(network.passed(Way::ToBmc, OPEN), opens);
        // The next call knows.
        assert_eq!(device.state("").await, Ok(PowerState::On));
        assert_eq!(network.passed(Way::ToBmc, OPEN), opens + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_suite_that_is_named_is_not_exchanged_for_another() {
    let only = login().with_ciphers(Ciphers::Only(Suite::Seventeen));
    let (said, network) = why_not(Bmc { suites: vec![3], ..Bmc::default() }, only.clone()).await;
    assert!(said.contains("switch 17 or 3 on there") && said.contains("cipher suite 17"), "{said}");
    assert_eq!(network.passed(Way::ToBmc, OPEN), 1);
    for offered in [0, 3] {
        let (said, _) = why_not(Bmc { insists_on: Some(offered), ..Bmc::default() }, only.clone()).await;
        assert!(said.contains("answers cipher suite 17 with another one"), "{said}");
    }
    let (said, network) = why_not(Bmc { insists_on: Some(0), ..Bmc::default() }, login()).await;
    assert!(said.contains("answers cipher suite 3 with another one"), "{said}");
    assert_eq!(network.passed(Way::ToBmc, IN_SESSION), 0);
}

#[tokio::test(start_paused = true)]
async fn ipmi_1_5_is_refused_before_a_name_is_told() {
    let (said, network) = why_not(Bmc { ipmi_2: false, ..Bmc::default() }, login()).await;
    assert!(said.contains("takes no sessions of IPMI 2.0"), "{said}");
    assert_eq!((network.passed(Way::ToBmc, BEFORE), network.passed(Way::ToBmc, OPEN)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_bmc_without_a_session_left_says_so() {
    let (said, _) = why_not(Bmc { full: true, ..Bmc::default() }, login()).await;
    assert!(said.contains("no session left; wait a minute"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_says_nothing_is_unknown() {
    let network = Lossy::new(Bmc::default(), |_| vec![]);
    let said = unknown(device(&network).state("").await);
    assert!(said.contains("was sent 4 times and not answered; it is without power or network"), "{said}");
}

#[test]
fn what_a_bmc_cannot_store_is_refused() {
    let why = |login: Result<Login, BadLogin>| login.map(|_| ()).unwrap_err().0;
    assert!(Login::new("sixteen-bytes-ok", "twenty-bytes-are-ok!").is_ok());
    let said = why(Login::new("fence", "twenty-one-bytes-are!"));
    assert!(said.contains("`password` has 21 bytes") && !said.contains("twenty"), "{said}");
    assert!(why(Login::new("seventeen-bytes-x", "p")).contains("`username` has 17 bytes"));
    assert!(why(Login::new("fence", "")).contains("`password` is empty"));
    assert!(why(Login::new("fence", "a\0b")).contains("NUL"));
    for bad in ["1", "0g", "+1", &"00".repeat(21), "é1"] {
        assert!(why(login().with_kg(bad)).contains("`hexadecimal_kg` is not a key"), "{bad}");
    }
    assert!(login().with_kg(&"00".repeat(20)).is_ok() && login().with_kg("0x0102").is_ok());
}

#[test]
fn a_suite_without_a_password_cannot_be_named() {
    assert_eq!(Ciphers::of("17"), Ok(Ciphers::Only(Suite::Seventeen)));
    assert_eq!(Ciphers::of(" 3 "), Ok(Ciphers::Only(Suite::Three)));
    assert!(Ciphers::of("0").unwrap_err().0.contains("lets in anyone without a password"));
    for broken in ["1", "2", "8", "12", "", "x"] {
        assert!(Ciphers::of(broken).is_err());
    }
    assert_eq!(Privilege::of("ADMINISTRATOR"), Ok(Privilege::Administrator));
    assert!(Privilege::of("callback").is_err());
}

#[test]
fn secrets_are_not_printed() {
    let login = login().with_kg("c0ffee").unwrap();
    let shown = format!("{login:?}");
    assert!(
        shown.contains("fence") && !shown.contains("s3cret") && !shown.contains("c0ffee") && !shown.contains("192")
    );
}
