//! Insecure: a template or a config that has a device's certificate not looked at says so aloud, to everybody who looks at it.
//!
//! Whoever stands between us and such a device can read its password, and can tell us that a machine is off which is not.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use palisade_api::config::FenceConfigSpec;
use palisade_api::parameters::Parameters;

use crate::events;
use crate::native::SSL_INSECURE;
use crate::view::View;

/// Which objects were told about, and whether somebody has to look again.
#[derive(Debug, Default)]
pub(crate) struct Insecure {
    changed: bool,
    told: BTreeSet<(String, Option<i64>)>,
}

impl Insecure {
    /// Templates or configs have changed.
    pub(crate) fn look_again(&mut self) {
        self.changed = true;
    }

    /// What people have to be told, each object once as it stands.
    pub(crate) fn words(&mut self, view: &View) -> Vec<(ObjectReference, String)> {
        if !std::mem::take(&mut self.changed) {
            return Vec::new();
        }
        let templates = view.templates.values().filter(|one| says_so(&one.spec.parameters.0));
        let templates = templates.map(|one| (events::about(one), one.uid(), one.metadata.generation));
        let configs = view.configs.values().filter(|one| any_says_so(&one.spec));
        let configs = configs.map(|one| (events::about(one), one.uid(), one.metadata.generation));
        let mut words = Vec::new();
        for (about, uid, generation) in templates.chain(configs) {
            if self.told.insert((uid.unwrap_or_default(), generation)) {
                let why = format!(
                    "{SSL_INSECURE} is set: nobody looks at the device's certificate, so whoever stands between can read its \
                     password and say that a machine is off which is not; give `ca` or `fingerprint` instead"
                );
                tracing::warn!(kind = about.kind, name = about.name, why);
                words.push((about, why));
            }
        }
        words
    }
}

fn says_so(parameters: &BTreeMap<String, String>) -> bool {
    let is = |name: &str| name.replace('-', "_") == SSL_INSECURE;
    // What is neither yes nor no is refused where it is used.
    let off = |value: &str| matches!(value.trim(), "0" | "false" | "no" | "off");
    parameters.iter().any(|(name, value)| is(name) && !off(value))
}

fn any_says_so(config: &FenceConfigSpec) -> bool {
    let steps = [&config.isolation, &config.power_management, &config.recovery];
    let levels = steps.into_iter().flat_map(|step| &step.levels);
    let mut methods = levels.flat_map(|level| &level.methods);
    methods.any(|method| {
        let own: [&Parameters; 1] = [&method.parameters];
        own.into_iter().chain(method.per_node.values()).any(|parameters| says_so(&parameters.0))
    })
}

#[cfg(test)]
mod tests {
    use palisade_api::FenceTemplate;
    use palisade_core::time::Tick;
    use serde_json::json;

    use super::*;
    use crate::view::{Change, Seen};

    fn template(generation: i64, insecure: &str) -> Box<FenceTemplate> {
        let object = json!({
            "apiVersion": "palisade.dev/v1alpha1", "kind": "FenceTemplate",
            "metadata": { "name": "bmc", "uid": "t", "generation": generation },
            "spec": { "native": { "driver": "redfish" }, "parameters": { "ssl-insecure": insecure } },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn each_version_of_an_object_is_told_about_once() {
        let (mut view, mut insecure) = (View::default(), Insecure::default());
        let mut see = |insecure: &mut Insecure, template| {
            view.take(Seen::Template(Change::Set(template)), Tick::START);
            insecure.look_again();
            insecure.words(&view).len()
        };
        assert_eq!(see(&mut insecure, template(1, "0")), 0);
        assert_eq!(see(&mut insecure, template(2, "1")), 1);
        assert_eq!(see(&mut insecure, template(2, "1")), 0);
        assert_eq!(see(&mut insecure, template(3, "yes")), 1);
    }
}
