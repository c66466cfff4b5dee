//! GET: one object or many, now or at a revision, whole or in pages.

use std::time::Duration;

use serde_json::Value;

use super::{
    handle::Api,
    kinds::Kind,
    metadata,
    path::{Place, Query},
    selector::{Fields, Labels},
    status::{Cause, Status},
    store::{Object, Store},
    wire::View,
};

/// Which objects of a kind a request is about.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) kind: Kind,
    namespace: String,
    name: String,
    labels: Labels,
    fields: Fields,
}

impl Selection {
    pub(crate) fn read(place: &Place, query: &Query) -> Result<Self, Status> {
        let kind = place.served.definition.kind;
        Ok(Self {
            kind,
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            labels: Labels::parse(query.text("labelSelector"))?,
            fields: Fields::parse(kind, query.text("fieldSelector"))?,
        })
    }

    pub(crate) fn selects(&self, object: &Value) -> bool {
        (self.namespace.is_empty() || metadata::namespace(object) == self.namespace)
            && (self.name.is_empty() || metadata::name(object) == self.name)
            && self.labels.select(object)
            && self.fields.select(object)
    }

    fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// What it selects at a revision.
    pub(crate) fn objects_at(&self, store: &Store, revision: u64) -> Result<Vec<Object>, Status> {
        let pick = |object: &&Object| self.selects(object);
        if revision < store.revision() {
            let past = store.list_at(self.kind, revision)?;
            return Ok(past.iter().filter(pick).cloned().collect());
        }
        Ok(if self.namespace.is_empty() {
            store.list(self.kind).map(|(_, object)| object).filter(pick).cloned().collect()
        } else {
            store.list_in(self.kind, &self.namespace).map(|(_, object)| object).filter(pick).cloned().collect()
        })
    }
}

/// A list, or a page of one.
pub(crate) struct Page {
    pub(crate) items: Vec<Object>,
    pub(crate) revision: u64,
    pub(crate) more: Option<String>,
    pub(crate) remaining: Option<usize>,
}

/// What this API server knows; waits, as upstream does, if the caller has seen more.
pub(crate) async fn fresh_enough(api: &Api, view: View, asked: u64) -> Result<u64, Status> {
    let known = || {
        let live = api.revision();
        match view {
            View::Live => live,
            View::At(revision) => revision.min(live),
        }
    };
    if asked > known() {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let known = known();
    if asked > known { Err(Status::too_large_revision(asked, known)) } else { Ok(known) }
}

pub(crate) async fn get(api: &Api, view: View, place: &Place, query: &Query) -> Result<Object, Status> {
    let revision = fresh_enough(api, view, query.number("resourceVersion")?.unwrap_or_default()).await?;
    let missing = || Status::not_found(&place.served.definition, &place.name);
    let key = place.key();
    let found = match view {
        View::Live => api.get(&key),
        View::At(_) => api.get_at(&key, revision)?,
    };
    found.ok_or_else(missing)
}

pub(crate) async fn list(api: &Api, view: View, place: &Place, query: &Query) -> Result<Page, Status> {
    let selection = Selection::read(place, query)?;
    let asked = query.number("resourceVersion")?;
    let way = query.text("resourceVersionMatch");
    if !way.is_empty() && asked.is_none() {
        return Err(bad_match("resourceVersionMatch is forbidden unless resourceVersion is provided"));
    }
    let known = fresh_enough(api, view, asked.unwrap_or_default()).await?;
    let limit = query.number("limit")?.filter(|limit| *limit > 0).and_then(|limit| usize::try_from(limit).ok());
    let token = query.text("continue");
    api.read(|store| {
        if !token.is_empty() {
            let (revision, after) = Token::read(token)?;
            let objects = selection.objects_at(store, revision).map_err(|_| Status::continue_expired())?;
            let rest = objects.into_iter().filter(|object| place_of(object) > (&after.0, &after.1)).collect();
            return Ok(page(rest, revision, limit, &selection));
        }
        let revision = if way == "Exact" { asked.unwrap_or(known) } else { known };
        Ok(page(selection.objects_at(store, revision)?, revision, limit, &selection))
    })
}

/// A `resourceVersionMatch` that does not go with the rest of the options.
pub(crate) fn bad_match(why: &str) -> Status {
    let cause = Cause::forbidden("resourceVersionMatch", why);
    Status::invalid_of(("ListOptions", "meta.k8s.io"), "", vec![cause])
}

fn place_of(object: &Value) -> (&str, &str) {
    (metadata::namespace(object), metadata::name(object))
}

fn page(mut objects: Vec<Object>, revision: u64, limit: Option<usize>, selection: &Selection) -> Page {
    let Some(limit) = limit.filter(|limit| *limit < objects.len()) else {
        return Page { items: objects, revision, more: None, remaining: None };
    };
    let remaining = selection.is_everything().then(|| objects.len() - limit);
    objects.truncate(limit);
    let more = objects.last().map(|last| Token::write(revision, last));
    Page { items: objects, revision, more, remaining }
}

/// Where the next page begins: the revision of the first one, and the last object of this one.
struct Token;

impl Token {
    fn write(revision: u64, last: &Object) -> String {
        let (namespace, name) = place_of(last);
        format!("{revision}/{namespace}/{name}")
    }

    fn read(token: &str) -> Result<(u64, (String, String)), Status> {
        let mut parts = token.splitn(3, '/');
        let revision = parts.next().and_then(|part| part.parse().ok());
        match (revision, parts.next(), parts.next()) {
            (Some(revision), Some(namespace), Some(name)) => Ok((revision, (namespace.to_owned(), name.to_owned()))),
            _ => Err(Status::bad_request("continue key is not valid: encoded start key empty (version )")),
        }
    }
}
