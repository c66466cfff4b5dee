//! World: the lab as the world of a story. Objects are seen through the API, everything else in the machine room.

mod fresh;
mod san;
mod sights;
mod verbs;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use kube::Client;

use crate::install;
use crate::lab::Lab;

use self::san::San;
use self::sights::Sights;

/// A lab in which a story happens.
pub struct LabWorld {
    lab: Lab,
    client: Client,
    /// Palisade's own account.
    account: PathBuf,
    sights: Sights,
    san: San,
    operators: BTreeMap<String, Operator>,
    since: Instant,
}

/// An operator of the story.
struct Operator {
    since: Instant,
    /// The node that it shares its fate with; it is a pod there, and else a process outside.
    node: Option<String>,
}

impl LabWorld {
    /// A world over a lab that is up.
    pub async fn over(lab: &Lab) -> Result<Self> {
        let client = lab.client().await?;
        let account = install::account(lab, &client).await?;
        let sights = Sights::through(&client).await;
        let san = San::at(lab.run().dir().join("san"));
        Ok(Self { lab: lab.clone(), client, account, sights, san, operators: BTreeMap::new(), since: Instant::now() })
    }

    /// The lab.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }
}
