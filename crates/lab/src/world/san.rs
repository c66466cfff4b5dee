//! World / san: who writes to which volume, by what the volumes hold.
//!
//! Every writer appends a line with its node and its pod. The order of the lines is the truth, whatever any clock says: a pod
//! whose line follows that of another node which took over from it is a second writer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the volumes are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// A writer that was not seen for so long writes no more; it writes five times a second.
const RECENT: Duration = Duration::from_millis(900);

/// The volumes, looked at all the time.
#[derive(Clone)]
pub(super) struct San {
    seen: Arc<Mutex<BTreeMap<String, Volume>>>,
}

/// What was read of one volume.
#[derive(Default)]
pub(super) struct Volume {
    read: u64,
    /// The node that wrote last.
    owner: String,
    /// The pods of the owner.
    pods: BTreeSet<String>,
    /// Pods that another node has taken over from.
    retired: BTreeSet<String>,
    last: BTreeMap<String, Instant>,
    bites: Vec<String>,
}

impl San {
    /// Looks on from now on.
    pub(super) fn at(dir: PathBuf) -> Self {
        let san = Self { seen: Arc::default() };
        let looking = san.clone();
        tokio::spawn(async move {
            loop {
                looking.look(&dir);
                tokio::time::sleep(LOOK).await;
            }
        });
        san
    }

    /// The nodes that write to a volume now.
    pub(super) fn writers(&self, volume: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(volume) = seen.get(volume) else { return Vec::new() };
        let recent = volume.last.iter().filter(|(_, at)| at.elapsed() < RECENT);
        recent.map(|(node, _)| node.clone()).collect()
    }

    /// Every write that must not have been.
    pub(super) fn bites(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().flat_map(|(name, volume)| volume.bites.iter().map(move |bite| format!("{name}: {bite}"))).collect()
    }

    fn look(&self, dir: &Path) {
        let volumes = std::fs::read_dir(dir.join("volumes")).into_iter().flatten().flatten();
        for entry in volumes {
            let name = entry.file_name().to_string_lossy().into_owned();
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let volume = seen.entry(name).or_default();
            if let Ok(text) = tail(&entry.path().join("writes.log"), volume.read) {
                volume.take(&text);
            }
        }
    }
}

impl Volume {
    /// Takes what was appended; half a line is left for the next look.
    fn take(&mut self, text: &str) {
        let Some(end) = text.rfind('\n') else { return };
        self.read += end as u64 + 1;
        for line in text[..end].lines() {
            let Some((node, pod)) = line.split_once(' ') else { continue };
            self.write(node, pod);
        }
    }

    fn write(&mut self, node: &str, pod: &str) {
        if self.retired.contains(pod) && self.bites.len() < 8 {
            self.bites.push(format!("pod {pod} on {node} wrote after {} had taken over", self.owner));
        }
        if self.owner != node {
            self.retired.append(&mut self.pods);
            node.clone_into(&mut self.owner);
        }
        self.pods.insert(pod.to_owned());
        self.last.insert(node.to_owned(), Instant::now());
    }
}

fn tail(file: &Path, from: u64) -> std::io::Result<String> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(from))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_is_no_bite() {
        let mut volume = Volume::default();
        volume.take("n1 a\nn1 a\nn2 b\nn2 b\nn1 c\nn1 c\n");
        assert!(volume.bites.is_empty(), "{:?}", volume.bites);
    }

    #[test]
    fn two_pods_of_one_node_share_a_volume() {
        let mut volume = Volume::default();
        volume.take("n1 a\nn1 b\nn1 a\nn1 b\n");
        assert!(volume.bites.is_empty(), "{:?}", volume.bites);
    }

    #[test]
    fn a_write_after_the_takeover_is_a_bite() {
        let mut volume = Volume::default();
        volume.take("n1 a\nn2 b\nn1 a\nn2 b\n");
        assert_eq!(volume.bites.len(), 2);
        assert!(volume.bites[0].contains("pod a on n1"), "{:?}", volume.bites);
    }

    #[test]
    fn half_a_line_waits_for_its_other_half() {
        let mut volume = Volume::default();
        volume.take("n1 a\nn2");
        assert_eq!((volume.read, volume.owner.as_str()), (5, "n1"));
    }
}
