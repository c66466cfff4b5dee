//! Conformance / checks: what an API server does, one file per subject.

mod binding;
mod concurrency;
mod create;
mod custom;
mod dry_runs;
mod events;
mod eviction;
mod fields;
mod finalizers;
mod leases;
mod lists;
mod metadata;
mod nodes;
mod pages;
mod patches;
mod pods;
mod preconditions;
mod rules;
mod status;
mod storage;
mod tables;
mod watches;

use super::Check;

pub(super) const TABLES: &[&[Check]] = &[
    preconditions::TABLE,
    concurrency::TABLE,
    create::TABLE,
    metadata::TABLE,
    status::TABLE,
    finalizers::TABLE,
    pods::TABLE,
    eviction::TABLE,
    binding::TABLE,
    patches::TABLE,
    lists::TABLE,
    pages::TABLE,
    watches::TABLE,
    leases::TABLE,
    events::TABLE,
    nodes::TABLE,
    storage::TABLE,
    custom::TABLE,
    fields::TABLE,
    rules::TABLE,
    dry_runs::TABLE,
    tables::TABLE,
];
