//! Native: the drivers inside the operator, found by the template's name for them.
//!
//! Promise (I7): what a Secret holds goes to its device and nowhere else. Which parameters a driver understands is said in
//! `core` (`resolve/known.rs`), long before it is needed; what they hold is looked at here.

use std::net::Ipv6Addr;
use std::sync::Arc;

use palisade_api::template::Driver;
use palisade_core::resolve::call::{self, Mechanism, Value};
use palisade_devices::https::{Https, Trust};
use palisade_devices::ipmi::{self, BadLogin, Ciphers, GuidOrder, Ipmi, Privilege, Udp};
use palisade_devices::redfish::{self, Credentials, Redfish, Sessions};
use palisade_devices::{Device, Failure, Transport};

use crate::belongs;
use crate::context::Devices;

/// The parameter that has a device's certificate not looked at, as fence agents know it.
pub(crate) const SSL_INSECURE: &str = "ssl_insecure";

/// The native drivers.
pub struct Native {
    way: Way,
    /// Of Redfish services that take no password with a request.
    sessions: Arc<Sessions>,
}

enum Way {
    /// One transport, which knows nothing of certificates, and no datagrams.
    One(Arc<dyn Transport>),
    /// A channel of its own for each device, by whom it trusts; UDP for those that have no HTTP.
    Network(Https),
}

impl Native {
    /// Drivers that send through `transport`, whatever a template says about certificates: for worlds that have none.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self { way: Way::One(transport), sessions: Arc::default() }
    }

    /// Drivers that reach each device over the network: by TLS, trusted as its template says, or by UDP.
    pub fn over(https: Https) -> Self {
        Self { way: Way::Network(https), sessions: Arc::default() }
    }

    fn redfish(&self, told: &Told<'_>) -> Result<Arc<dyn Device>, Failure> {
        let base = base(told.address()?.trim(), told.text("ipport").as_deref());
        let credentials = Credentials {
            username: told.text("username").unwrap_or_default(),
            password: told.text("password").unwrap_or_default(),
        };
        let login = told.text("session").map(|word| redfish::Login::of(&word)).transpose();
        let login = login.map_err(|why| told.named(why))?.unwrap_or_default();
        let device = Redfish::new(self.transport(told)?, base, credentials).with_login(login);
        Ok(Arc::new(device.with_sessions(Arc::clone(&self.sessions))))
    }

    fn transport(&self, told: &Told<'_>) -> Result<Arc<dyn Transport>, Failure> {
        let https = match &self.way {
            Way::One(transport) => return Ok(Arc::clone(transport)),
            Way::Network(https) => https,
        };
        let (ca, fingerprint, insecure) = (told.text("ca"), told.text("fingerprint"), told.text(SSL_INSECURE));
        let trust = Trust::of(ca.as_deref(), fingerprint.as_deref(), insecure.as_deref());
        let channel = trust.and_then(|trust| https.to(&trust));
        Ok(Arc::new(channel.map_err(|why| told.refused(&why.to_string()))?))
    }

    fn ipmi(&self, told: &Told<'_>) -> Result<Arc<dyn Device>, Failure> {
        if let Way::One(_) = &self.way {
            return Err(told.refused("IPMI needs a network, and there is none in here; use redfish"));
        }
        let port = match told.text("ipport") {
            Some(port) => {
                port.trim().parse().map_err(|_| told.refused("`ipport` is no port, which is 623 for IPMI"))?
            }
            None => ipmi::PORT,
        };
        let network = Arc::new(Udp::to(told.address()?.trim(), port));
        let (login, order) = login(told).map_err(|why| told.refused(&why.to_string()))?;
        let device = Ipmi::new(network, login).with_guid_order(order);
        Ok(Arc::new(if belongs::wants_serial(told.device) { device.with_serial() } else { device }))
    }
}

/// How to log in to a BMC, and how it writes its GUID. What is left out is decided by the driver.
fn login(told: &Told<'_>) -> Result<(ipmi::Login, GuidOrder), BadLogin> {
    let text = |name| told.text(name).unwrap_or_default();
    let mut login = ipmi::Login::new(text("username"), text("password"))?;
    if let Some(word) = told.text("privlvl") {
        login = login.with_privilege(Privilege::of(&word)?);
    }
    if let Some(number) = told.text("cipher") {
        login = login.with_ciphers(Ciphers::of(&number)?);
    }
    if let Some(key) = told.text("hexadecimal_kg") {
        login = login.with_kg(&key)?;
    }
    let order = told.text("guid_order").map(|word| GuidOrder::of(&word)).transpose()?;
    Ok((login, order.unwrap_or_default()))
}

impl Devices for Native {
    fn driver(
        &self,
        device: &call::Device,
        secret: &dyn Fn(&str, &str) -> Option<String>,
    ) -> Result<Arc<dyn Device>, Failure> {
        let told = Told { device, secret };
        match &device.mechanism {
            Mechanism::Native(Driver::Redfish) => self.redfish(&told),
            Mechanism::Native(Driver::Ipmi) => self.ipmi(&told),
            other => Err(told.refused(&format!("{other:?} has no driver in this version"))),
        }
    }
}

/// What a device is told, its secrets looked up.
struct Told<'a> {
    device: &'a call::Device,
    secret: &'a dyn Fn(&str, &str) -> Option<String>,
}

impl Told<'_> {
    fn address(&self) -> Result<String, Failure> {
        self.text("ip").ok_or_else(|| self.refused("no `ip`"))
    }

    fn refused(&self, why: &str) -> Failure {
        Failure::Refused(format!("{}: {why}", self.device.template))
    }

    /// Says which template it was.
    fn named(&self, why: Failure) -> Failure {
        match why {
            Failure::Refused(why) => self.refused(&why),
            Failure::Unknown(why) => Failure::Unknown(format!("{}: {why}", self.device.template)),
        }
    }

    /// A parameter, in whichever of its spellings it was written.
    fn text(&self, wanted: &str) -> Option<String> {
        let older = match wanted {
            "ip" => "ipaddr",
            "username" => "login",
            "password" => "passwd",
            _ => wanted,
        };
        let is = |name: &str| [wanted, older].contains(&name.replace('-', "_").as_str());
        match self.device.parameters.iter().find(|(name, _)| is(name))?.1 {
            Value::Text(text) => Some(text.clone()),
            Value::Secret { name, key } => (self.secret)(name, key),
        }
    }
}

/// Scheme and authority of a device.
fn base(ip: &str, port: Option<&str>) -> String {
    let host = if ip.parse::<Ipv6Addr>().is_ok() { format!("[{ip}]") } else { ip.to_owned() };
    match port {
        Some(port) => format!("https://{host}:{}", port.trim()),
        None => format!("https://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use palisade_api::template::Identity;
    use palisade_core::time::Span;

    use super::*;

    fn device(driver: Driver, parameters: &[(&str, &str)]) -> call::Device {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), Value::Text((*value).to_owned()));
        call::Device {
            template: "bmc".to_owned(),
            mechanism: Mechanism::Native(driver),
            parameters: parameters.iter().map(text).collect::<BTreeMap<_, _>>(),
            plug: call::THE_NODE.into(),
            timeout: Span::secs(5),
            identity: Identity::WhenKnown,
        }
    }

    fn refused(parameters: &[(&str, &str)]) -> Option<String> {
        let native = Native::over(Https::default());
        native.driver(&device(Driver::Redfish, parameters), &|_, _| None).err().map(|why| why.to_string())
    }

    fn not_spoken_to(parameters: &[(&str, &str)]) -> Option<String> {
        let mut device = device(Driver::Ipmi, &[&[("ip", "192.0.2.7"), ("username", "fence")], parameters].concat());
        let password = Value::Secret { name: "bmc".to_owned(), key: "password".to_owned() };
        device.parameters.insert("password".to_owned(), password);
        let secret = |name: &str, key: &str| (name == "bmc" && key == "password").then(|| "s3cret".to_owned());
        let why = Native::over(Https::default()).driver(&device, &secret).err().map(|why| why.to_string());
        assert!(why.iter().all(|why| !why.contains("s3cret") && why.contains("bmc: ")), "{why:?}");
        why
    }

    #[test]
    fn a_device_whose_certificate_nobody_can_judge_is_refused_before_it_is_told_anything() {
        let why = refused(&[("ip", "192.0.2.7"), ("fingerprint", "abc")]).unwrap();
        assert!(why.contains("bmc: `fingerprint` is not the SHA-256"), "{why}");
        let why = refused(&[("ip", "192.0.2.7"), ("ssl-insecure", "1"), ("ca", "pem")]).unwrap();
        assert!(why.contains("keep one of them"), "{why}");
        assert_eq!(refused(&[("ipaddr", "192.0.2.7"), ("ssl_insecure", "1"), ("session", "1")]), None);
        let why = refused(&[("ip", "192.0.2.7"), ("session", "maybe")]).unwrap();
        assert!(why.contains("bmc: `session` is"), "{why}");
    }

    #[test]
    fn a_bmc_is_spoken_to_only_in_ways_that_are_safe_and_plain() {
        for good in [
            &[][..],
            &[("cipher", "17"), ("privlvl", "administrator"), ("guid_order", "smbios")],
            &[("cipher", "3"), ("privlvl", "OPERATOR"), ("ipport", "6230"), ("serial", "S-42")],
        ] {
            assert_eq!(not_spoken_to(good), None, "{good:?}");
        }
        for (name, value, words) in [
            ("cipher", "0", "lets in anyone"),
            ("cipher", "2", "17 and 3"),
            ("privlvl", "root", "user, operator or administrator"),
            ("guid_order", "auto", "smbios, ipmi or rfc4122"),
            ("ipport", "many", "623"),
            ("hexadecimal_kg", "xyz", "not a key"),
        ] {
            let why = not_spoken_to(&[(name, value)]).unwrap_or_default();
            assert!(why.contains(words), "{name}: {why}");
        }
    }

    struct Nowhere;
    impl Transport for Nowhere {
        fn send(&self, _: palisade_devices::Request) -> palisade_devices::Sent<'_, palisade_devices::Response> {
            Box::pin(std::future::ready(Err(palisade_devices::Unreachable(String::new()))))
        }
    }

    #[test]
    fn a_bmc_without_a_password_or_a_network_is_refused() {
        let without = device(Driver::Ipmi, &[("ip", "192.0.2.7"), ("username", "fence")]);
        let why = Native::over(Https::default()).driver(&without, &|_, _| None).err().map(|why| why.to_string());
        assert!(why.is_some_and(|why| why.contains("`password` is empty")));
        let why = Native::new(Arc::new(Nowhere)).driver(&without, &|_, _| None).err().map(|why| why.to_string());
        assert!(why.is_some_and(|why| why.contains("IPMI needs a network")));
    }

    #[test]
    fn an_address_of_either_family_becomes_one_of_the_web() {
        assert_eq!(base("192.0.2.7", None), "https://192.0.2.7");
        assert_eq!(base("fd00::7", Some("8443")), "https://[fd00::7]:8443");
        assert_eq!(base("bmc-1.example", Some("443")), "https://bmc-1.example:443");
    }
}
