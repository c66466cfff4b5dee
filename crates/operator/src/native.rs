//! Native: the drivers inside the operator, found by the template's name for them.

use std::sync::Arc;

use palisade_api::template::Driver;
use palisade_core::resolve::call::{self, Mechanism, Value};
use palisade_devices::redfish::{Credentials, Redfish};
use palisade_devices::{Device, Failure, Transport};

use crate::context::Devices;

/// The native drivers, over one transport.
pub struct Native {
    transport: Arc<dyn Transport>,
}

impl Native {
    /// Drivers that send through `transport`.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport }
    }
}

impl Devices for Native {
    fn driver(
        &self,
        device: &call::Device,
        secret: &dyn Fn(&str, &str) -> Option<String>,
    ) -> Result<Arc<dyn Device>, Failure> {
        let text = |name: &str| match device.parameters.get(name)? {
            Value::Text(text) => Some(text.clone()),
            Value::Secret { name, key } => secret(name, key),
        };
        match &device.mechanism {
            Mechanism::Native(Driver::Redfish) => {
                let ip = text("ip").ok_or_else(|| Failure::Refused(format!("{}: no `ip`", device.template)))?;
                let base = match text("ipport") {
                    Some(port) => format!("https://{ip}:{port}"),
                    None => format!("https://{ip}"),
                };
                let credentials = Credentials {
                    username: text("username").unwrap_or_default(),
                    password: text("password").unwrap_or_default(),
                };
                Ok(Arc::new(Redfish::new(Arc::clone(&self.transport), base, credentials)))
            }
            other => Err(Failure::Refused(format!("{}: {other:?} has no driver in this version", device.template))),
        }
    }
}
