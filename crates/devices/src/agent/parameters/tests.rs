use super::super::metadata::tests::PDU;
use super::*;

fn told(plain: &[(&str, &str)]) -> Parameters {
    let plain = plain.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let secret = BTreeMap::from([("password".to_owned(), Secret::new("s3cret"))]);
    Parameters { plain, secret }
}

fn checked(plain: &[(&str, &str)]) -> Result<Checked, BadParameter> {
    Checked::new("fence_pdu", &Metadata::read(PDU).unwrap(), &told(plain))
}

/// What a person reads who got it wrong.
fn wrong(plain: &[(&str, &str)]) -> String {
    let mut all = vec![("ip", "192.0.2.7")];
    all.retain(|(name, _)| !plain.iter().any(|(other, _)| other == name));
    all.extend(plain);
    let why = checked(&all).unwrap_err().to_string();
    assert!(why.contains("fence_pdu"), "{why} does not name the agent");
    why
}

fn lines(checked: &Checked, plug: &str) -> Vec<String> {
    checked.input("off", plug).unwrap().value().lines().map(str::to_owned).collect()
}

#[test]
fn an_agent_is_told_the_action_the_plug_and_each_value_by_its_present_name() {
    let checked = checked(&[("ipaddr", "192.0.2.7"), ("login", "a user"), ("power-wait", "2")]).unwrap();
    assert_eq!(
        lines(&checked, "3"),
        ["action=off", "plug=3", "ip=192.0.2.7", "password=s3cret", "power_wait=2", "username=a user"]
    );
    assert_eq!(checked.users(), ["a user"]);
}

#[test]
fn a_false_boolean_is_left_out_and_a_true_one_is_1() {
    for no in ["0", "no", "Off", "false"] {
        let checked = checked(&[("ip", "192.0.2.7"), ("ssl_insecure", no)]).unwrap();
        assert!(lines(&checked, "3").iter().all(|line| !line.starts_with("ssl_insecure")), "{no}");
    }
    let yes = checked(&[("ip", "192.0.2.7"), ("ssl-insecure", "True")]).unwrap();
    assert!(lines(&yes, "3").contains(&"ssl_insecure=1".to_owned()));
    assert!(wrong(&[("ssl_insecure", "maybe")]).contains("true or false"));
    assert!(wrong(&[("ssl", "0")]).contains("do not understand a no"), "leaving it out would be a yes");
}

#[test]
fn what_the_agent_would_ignore_or_alter_is_refused_by_name() {
    for (name, value, said) in [
        ("ip_address", "192.0.2.7", "knows no parameter `ip_address`"),
        ("cipher", "", "`cipher` has no value"),
        ("username", "x\naction=on", "`username` has a control character"),
        ("username", "x\u{2028}y", "`username` has a control character"),
        ("username", " x", "outer blanks off the value of `username`"),
        ("username", "\"x\"", "outer quotes off the value of `username`"),
        ("cipher", "3 chassis power on", "`cipher` goes onto a command line"),
        ("cipher", "-f", "`cipher` goes onto a command line"),
        ("cipher", "3;reboot", "`cipher` goes onto a command line"),
        ("ipport", "ipmi", "`ipport` has to be a number"),
        ("power_wait", "2s", "`power_wait` has to be a number of seconds"),
        ("snmp_version", "3", "`snmp_version` has to be one of 1, 2c"),
        ("method", "cycle", "`method` may not be set: with it, off is said"),
        ("missing_as_off", "0", "`missing_as_off` may not be set"),
        ("plug", "3", "`plug` may not be set"),
        ("port", "3", "`port` may not be set"),
        ("debug_file", "/etc/passwd", "`debug_file` may not be set"),
    ] {
        let why = wrong(&[(name, value)]);
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn two_values_for_one_parameter_are_refused() {
    assert!(wrong(&[("ip", "192.0.2.7"), ("ipaddr", "192.0.2.8")]).contains("given twice"));
    assert!(wrong(&[("passwd", "other")]).contains("`password` is given twice"));
}

#[test]
fn a_secret_is_checked_like_anything_else_and_never_shown() {
    for bad in ["x\ny", " canary", "\"canary\"", ""] {
        let secret = BTreeMap::from([("password".to_owned(), Secret::new(bad))]);
        let told = Parameters { plain: BTreeMap::from([("ip".to_owned(), "192.0.2.7".to_owned())]), secret };
        let why = Checked::new("fence_pdu", &Metadata::read(PDU).unwrap(), &told).unwrap_err().to_string();
        assert!(why.contains("`password`") && !why.contains("canary"), "{why}");
    }
    assert!(!format!("{:?}", checked(&[("ip", "192.0.2.7")]).unwrap()).contains("s3cret"));
}

#[test]
fn what_the_agent_needs_has_to_be_there() {
    assert!(checked(&[]).unwrap_err().to_string().contains("needs `ip`"));
}

/// F1 and F3: of a list of plugs, agents switch one off and say that all are.
#[test]
fn a_list_of_plugs_is_refused() {
    let checked = checked(&[("ip", "192.0.2.7")]).unwrap();
    let why = |plug| checked.input("off", plug).unwrap_err().to_string();
    assert!(why("3,4").contains("no single plug"), "{}", why("3,4"));
    assert!(why("").contains("none is named"));
    assert!(why(" 3").contains("outer blanks"));
    assert!(why("3\naction=on").contains("control character"));
    assert!(why("3;reboot").contains("signs of a shell"));
    assert_eq!(lines(&checked, "the database")[1], "plug=the database");
}

/// F6: without it, fence_redfish takes the last system of the service, whosever it is.
#[test]
fn a_service_of_many_systems_is_told_which() {
    let many = PDU.replace("name=\"cipher\"", "name=\"systems-uri\"");
    let metadata = Metadata::read(&many).unwrap();
    let said =
        |told: &Parameters| Checked::new("fence_redfish", &metadata, told).map(|_| ()).map_err(|why| why.to_string());
    assert!(said(&told(&[("ip", "192.0.2.7")])).unwrap_err().contains("set it to the path of this node's"));
    assert_eq!(said(&told(&[("ip", "192.0.2.7"), ("systems_uri", "/redfish/v1/Systems/1")])), Ok(()));
}

#[test]
fn a_plug_that_the_agent_would_ignore_is_refused() {
    let one = PDU.replace("name=\"cipher\"", "name=\"port_as_ip\"").replace("required=\"1\"", "required=\"0\"");
    let metadata = Metadata::read(&one).unwrap();
    let input = |plain: &[(&str, &str)], plug: &str| {
        let checked = Checked::new("fence_ipmilan", &metadata, &told(plain));
        checked.and_then(|checked| checked.input("off", plug)).map(|_| ()).map_err(|why| why.to_string())
    };
    assert!(input(&[("ip", "192.0.2.7")], "3").unwrap_err().contains("would ignore the plug"));
    assert_eq!(input(&[("ip", "192.0.2.7")], ""), Ok(()));
    assert_eq!(input(&[("port_as_ip", "1")], "192.0.2.7"), Ok(()));
    assert!(input(&[("port_as_ip", "1"), ("ip", "192.0.2.7")], "192.0.2.8").is_err());
    assert!(input(&[("port_as_ip", "1")], "").unwrap_err().contains("none is named"));
}

#[test]
fn more_than_a_pipe_holds_is_refused() {
    let long = "x".repeat(MOST);
    let checked = checked(&[("ip", "192.0.2.7"), ("username", &long)]).unwrap();
    assert!(matches!(checked.input("off", "3"), Err(BadParameter::TooMuch { .. })));
}
