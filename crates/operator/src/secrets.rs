//! Secrets: what devices have to be told that nobody else may know, read by name when it is needed.
//!
//! Promise (I7): what was read is kept for one call, one series of reads or one series of checks, and goes with it; it goes to its
//! device and nowhere else. Never: is printed; this type cannot be.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::api::Api;
use palisade_core::ident::NodeName;
use palisade_core::planted::{self, Bug};
use palisade_core::resolve::call::{Device as Target, Value};
use palisade_devices::Failure;
use tokio::sync::Mutex;

use crate::context::Context;

type Data = BTreeMap<String, ByteString>;
/// The values that a device needs, by Secret and key.
pub(crate) type Values = BTreeMap<(String, String), String>;

/// What was read. Whoever needs a Secret while somebody else reads it waits for that.
#[derive(Default)]
pub(crate) struct Purse {
    read: Mutex<BTreeMap<String, Data>>,
}

impl fmt::Debug for Purse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Purse(***)")
    }
}

impl Purse {
    /// Everything that a device needs.
    pub(crate) async fn of(&self, context: &Context, node: &NodeName, target: &Target) -> Result<Values, Failure> {
        let mut values = Values::new();
        for value in target.parameters.values() {
            let Value::Secret { name, key } = value else { continue };
            let text = self.text(context, node, name, key).await?;
            values.insert((name.clone(), key.clone()), text);
        }
        Ok(values)
    }

    /// What was read may be out of date: it is read again when it is next needed.
    pub(crate) async fn empty(&self) {
        self.read.lock().await.clear();
    }

    async fn text(&self, context: &Context, node: &NodeName, name: &str, key: &str) -> Result<String, Failure> {
        let mut read = self.read.lock().await;
        if !read.contains_key(name)
            && let Some(data) = get(context, node, name).await?
        {
            read.insert(name.to_owned(), data);
        }
        let found = read.get(name).and_then(|data| data.get(key));
        let bytes = found
            .ok_or_else(|| Failure::Refused(format!("the Secret {name} in {} has no key {key}", context.namespace)))?;
        String::from_utf8(bytes.0.clone())
            .map_err(|_| Failure::Refused(format!("{key} of the Secret {name} is no text")))
    }
}

async fn get(context: &Context, node: &NodeName, name: &str) -> Result<Option<Data>, Failure> {
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &context.namespace);
    let found = secrets.get_opt(name).await.map_err(|why| Failure::Unknown(format!("Secret {name}: {why}")))?;
    let data = found.and_then(|secret| secret.data);
    if planted::is(Bug::TellsASecret)
        && let Some(text) = data.as_ref().and_then(|data| data.get("password"))
    {
        let news = tokio::sync::mpsc::unbounded_channel().0;
        let about = ObjectReference { name: Some(node.to_string()), ..ObjectReference::default() };
        let text = String::from_utf8_lossy(&text.0);
        crate::events::tell(context, &news, about, crate::events::Tone::Normal, "LoggedIn", &text).await;
    }
    Ok(data)
}
