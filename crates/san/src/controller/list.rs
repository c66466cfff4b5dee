//! List: all volumes, page by page, with the nodes that reach them.

use palisade_csi::Status;
use palisade_csi::messages::controller::{ListVolumesRequest, ListVolumesResponse, VolumeEntry, VolumeStatus};

use super::volumes::told;
use crate::serve::out_of_order;
use crate::truth::{Id, San, Volume};

/// A token is this and the ID of the last volume of its page. So it stays good when that volume is gone, and volumes that
/// come later are found.
const AFTER: &str = "after:";

pub(super) fn list(san: &San, request: &ListVolumesRequest) -> Result<ListVolumesResponse, Status> {
    let all = san.volumes().map_err(|why| out_of_order(&why))?;
    page(&all, request)
}

/// A page of the volumes, which are ordered by ID.
fn page(all: &[Volume], request: &ListVolumesRequest) -> Result<ListVolumesResponse, Status> {
    let most = usize::try_from(request.max_entries)
        .map_err(|_| Status::invalid_argument("a page of less than nothing was asked for"))?;
    let from = match request.starting_token.as_str() {
        "" => 0,
        token => {
            let last = token.strip_prefix(AFTER).and_then(Id::read);
            let last = last.ok_or_else(|| Status::aborted(format!("{token:?} is no token of ours")))?;
            all.partition_point(|volume| volume.id <= last)
        }
    };
    let rest = &all[from..];
    let most = if most == 0 { rest.len() } else { most.min(rest.len()) };
    let next_token = match rest[..most].last() {
        Some(last) if most < rest.len() => format!("{AFTER}{}", last.id),
        Some(_) | None => String::new(),
    };
    Ok(ListVolumesResponse { entries: rest[..most].iter().map(entry).collect(), next_token })
}

fn entry(volume: &Volume) -> VolumeEntry {
    let published_node_ids = volume.published.keys().map(ToString::to_string).collect();
    VolumeEntry { volume: Some(told(volume)), status: Some(VolumeStatus { published_node_ids }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_csi::Code;
    use std::collections::BTreeMap;

    fn volumes(ids: &[&str]) -> Vec<Volume> {
        let volume = |id: &&str| Volume {
            id: Id::read(id).unwrap(),
            name: (*id).to_owned(),
            bytes: 1,
            parameters: BTreeMap::new(),
            published: BTreeMap::new(),
        };
        ids.iter().map(volume).collect()
    }

    fn ask(all: &[Volume], max_entries: i32, token: &str) -> (Vec<String>, String) {
        let request = ListVolumesRequest { max_entries, starting_token: token.to_owned() };
        let page = page(all, &request).unwrap();
        let ids = page.entries.into_iter().filter_map(|entry| entry.volume).map(|volume| volume.volume_id);
        (ids.collect(), page.next_token)
    }

    #[test]
    fn pages_follow_each_other_even_when_volumes_come_and_go() {
        let (first, token) = ask(&volumes(&["a", "b", "c"]), 2, "");
        assert_eq!((first.join(" "), token.as_str()), ("a b".to_owned(), "after:b"));
        let (second, token) = ask(&volumes(&["a", "bb", "c"]), 2, &token);
        assert_eq!((second.join(" "), token.as_str()), ("bb c".to_owned(), ""));
        assert_eq!(ask(&[], 2, "after:z"), (vec![], String::new()));
        assert_eq!(ask(&volumes(&["a", "b"]), 0, "").0.len(), 2);
    }

    #[test]
    fn a_token_that_is_not_ours_is_aborted() {
        let ask = |max_entries, token: &str| {
            let request = ListVolumesRequest { max_entries, starting_token: token.to_owned() };
            page(&volumes(&["a"]), &request).unwrap_err().code()
        };
        assert_eq!(
            (ask(0, "invalid-token"), ask(0, "after:../x"), ask(-1, "")),
            (Code::Aborted, Code::Aborted, Code::InvalidArgument)
        );
    }
}
