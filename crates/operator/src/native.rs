//! Native: the drivers inside the operator, found by the template's name for them.
//!
//! Promise (I7): what a Secret holds goes to its device and nowhere else.

use std::net::Ipv6Addr;
use std::sync::Arc;

use palisade_api::template::Driver;
use palisade_core::resolve::call::{self, Mechanism, Value};
use palisade_devices::https::{Https, Trust};
use palisade_devices::redfish::{Credentials, Redfish};
use palisade_devices::{Device, Failure, Transport};

use crate::context::Devices;

/// The parameter that has a device's certificate not looked at, as fence agents know it.
pub(crate) const SSL_INSECURE: &str = "ssl_insecure";

/// The native drivers.
pub struct Native {
    way: Way,
}

enum Way {
    /// One transport, which knows nothing of certificates.
    One(Arc<dyn Transport>),
    /// A channel of its own for each device, by whom it trusts.
    Https(Https),
}

impl Native {
    /// Drivers that send through `transport`, whatever a template says about certificates: for worlds that have none.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self { way: Way::One(transport) }
    }

    /// Drivers that reach each device over TLS, and trust it as its template says.
    pub fn over(https: Https) -> Self {
        Self { way: Way::Https(https) }
    }

    fn transport(&self, told: &Told<'_>) -> Result<Arc<dyn Transport>, Failure> {
        let https = match &self.way {
            Way::One(transport) => return Ok(Arc::clone(transport)),
            Way::Https(https) => https,
        };
        let (ca, fingerprint, insecure) = (told.text("ca"), told.text("fingerprint"), told.text(SSL_INSECURE));
        let trust = Trust::of(ca.as_deref(), fingerprint.as_deref(), insecure.as_deref());
        let channel = trust.and_then(|trust| https.to(&trust));
        let channel = channel.map_err(|why| Failure::Refused(format!("{}: {why}", told.device.template)))?;
        Ok(Arc::new(channel))
    }
}

impl Devices for Native {
    fn driver(
        &self,
        device: &call::Device,
        secret: &dyn Fn(&str, &str) -> Option<String>,
    ) -> Result<Arc<dyn Device>, Failure> {
        let told = Told { device, secret };
        match &device.mechanism {
            Mechanism::Native(Driver::Redfish) => {
                let ip = told.text("ip").ok_or_else(|| Failure::Refused(format!("{}: no `ip`", device.template)))?;
                let base = base(ip.trim(), told.text("ipport").as_deref());
                let credentials = Credentials {
                    username: told.text("username").unwrap_or_default(),
                    password: told.text("password").unwrap_or_default(),
                };
                Ok(Arc::new(Redfish::new(self.transport(&told)?, base, credentials)))
            }
            other => Err(Failure::Refused(format!("{}: {other:?} has no driver in this version", device.template))),
        }
    }
}

/// What a device is told, its secrets looked up.
struct Told<'a> {
    device: &'a call::Device,
    secret: &'a dyn Fn(&str, &str) -> Option<String>,
}

impl Told<'_> {
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

    fn device(parameters: &[(&str, &str)]) -> call::Device {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), Value::Text((*value).to_owned()));
        call::Device {
            template: "bmc".to_owned(),
            mechanism: Mechanism::Native(Driver::Redfish),
            parameters: parameters.iter().map(text).collect::<BTreeMap<_, _>>(),
            plug: call::THE_NODE.into(),
            timeout: Span::secs(5),
            identity: Identity::WhenKnown,
        }
    }

    fn refused(parameters: &[(&str, &str)]) -> Option<String> {
        let native = Native::over(Https::default());
        native.driver(&device(parameters), &|_, _| None).err().map(|why| why.to_string())
    }

    #[test]
    fn a_device_whose_certificate_nobody_can_judge_is_refused_before_it_is_told_anything() {
        let why = refused(&[("ip", "192.0.2.7"), ("fingerprint", "abc")]).unwrap();
        assert!(why.contains("bmc: `fingerprint` is not the SHA-256"), "{why}");
        let why = refused(&[("ip", "192.0.2.7"), ("ssl-insecure", "1"), ("ca", "pem")]).unwrap();
        assert!(why.contains("keep one of them"), "{why}");
        assert_eq!(refused(&[("ipaddr", "192.0.2.7"), ("ssl_insecure", "1")]), None);
    }

    #[test]
    fn an_address_of_either_family_becomes_one_of_the_web() {
        assert_eq!(base("192.0.2.7", None), "https://192.0.2.7");
        assert_eq!(base("fd00::7", Some("8443")), "https://[fd00::7]:8443");
        assert_eq!(base("bmc-1.example", Some("443")), "https://bmc-1.example:443");
    }
}
