//! Truth: the directory that is the SAN.
//!
//! Promise: what is read is one moment of one volume (files change by rename), and whoever changes a volume has read it under
//! the lock. The lock is held for a few file operations and never across a mount or an await; nodes never take it, so a
//! machine that freezes cannot hold up the SAN.
//! An event is logged after it has happened. A process that is killed right in between leaves the state right and the log one
//! line short. Nothing is synced to disk: machines of the lab die, their host does not.

mod event;
mod id;
mod volume;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use event::{Event, What, events};
pub(crate) use id::Id;
pub(crate) use volume::{Access, Publication, Verdict, Volume};

/// The SAN. Its methods block for a moment.
#[derive(Clone, Debug)]
pub(crate) struct San {
    dir: PathBuf,
}

/// To which nodes each volume is published, by volume. Volumes that are published to nobody have an empty list.
pub fn published(san: &Path) -> io::Result<BTreeMap<String, Vec<String>>> {
    let volumes = San { dir: san.to_path_buf() }.volumes()?;
    let nodes = |volume: &Volume| volume.published.keys().map(ToString::to_string).collect();
    Ok(volumes.iter().map(|volume| (volume.id.to_string(), nodes(volume))).collect())
}

/// Makes a node known to the SAN, as the driver on that node does when it starts.
pub fn register_node(san: &Path, node: &str) -> io::Result<()> {
    let id = Id::read(node).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{node:?} cannot be the name of a node: letters, digits, -, _ and ."),
        )
    })?;
    San::open(san)?.register(&id)
}

impl San {
    /// The SAN in this directory, which is made if it is not there.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        for room in ["volumes", "state", "nodes"] {
            fs::create_dir_all(dir.join(room)).map_err(|why| named(dir, &why))?;
        }
        Ok(Self { dir: dir.canonicalize()? })
    }

    /// Whether the directory can be reached.
    pub(crate) fn is_there(&self) -> bool {
        self.dir.join("state").is_dir()
    }

    /// Where a volume's data is.
    pub(crate) fn data(&self, id: &Id) -> PathBuf {
        self.dir.join("volumes").join(id.as_str())
    }

    fn state(&self, id: &Id) -> PathBuf {
        self.dir.join("state").join(format!("{id}.json"))
    }

    /// All volumes, by ID.
    pub(crate) fn volumes(&self) -> io::Result<Vec<Volume>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(self.dir.join("state")).map_err(|why| named(&self.dir, &why))? {
            let name = entry?.file_name();
            // What is being written has another ending.
            ids.extend(name.to_str().and_then(|name| name.strip_suffix(".json")).and_then(Id::read));
        }
        ids.sort();
        let mut volumes = Vec::new();
        for id in ids {
            // Deleted since we looked.
            volumes.extend(self.volume(&id)?);
        }
        Ok(volumes)
    }

    /// A volume, if there is one with that ID.
    pub(crate) fn volume(&self, id: &Id) -> io::Result<Option<Volume>> {
        read(&self.state(id))
    }

    /// Whether the SAN knows a node.
    pub(crate) fn knows(&self, node: &Id) -> bool {
        self.dir.join("nodes").join(format!("{node}.json")).is_file()
    }

    /// Makes a node known. Again and again is fine.
    pub(crate) fn register(&self, node: &Id) -> io::Result<()> {
        if !self.knows(node) {
            let event = Event::now(What::Registered).of_node(node);
            write(&self.dir.join("nodes").join(format!("{node}.json")), &event)?;
            self.log(&event)?;
        }
        Ok(())
    }

    /// Keeps everybody else from changing volumes for as long as the answer lives.
    pub(crate) fn lock(&self) -> io::Result<Locked<'_>> {
        let file = OpenOptions::new().create(true).append(true).open(self.dir.join("lock"))?;
        file.lock()?;
        Ok(Locked { san: self, _file: file })
    }

    /// Adds a line to the log. A line is one write at the end of the file, so that lines of several processes never mix.
    pub(crate) fn log(&self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        OpenOptions::new().create(true).append(true).open(self.dir.join("truth.log"))?.write_all(&line)
    }
}

/// The SAN in the hands of the one who may change volumes. Closing the file lets go of the lock.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    san: &'a San,
    _file: File,
}

impl Locked<'_> {
    /// Makes a volume, its data first: a volume that is known has data.
    pub(crate) fn create(&self, volume: &Volume) -> io::Result<()> {
        let data = self.san.data(&volume.id);
        fs::create_dir_all(&data)?;
        // Whoever the pod runs as may write.
        fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
        write(&self.san.state(&volume.id), volume)?;
        self.san.log(&Event::now(What::Created).of_volume(&volume.id))
    }

    /// Destroys a volume, its data first: asked again after a crash, we find it and go on.
    pub(crate) fn delete(&self, id: &Id) -> io::Result<()> {
        match fs::remove_dir_all(self.san.data(id)) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            Ok(()) | Err(_) => {}
        }
        fs::remove_file(self.san.state(id))?;
        self.san.log(&Event::now(What::Deleted).of_volume(id))
    }

    /// Publishes a volume to a node.
    pub(crate) fn publish(&self, mut volume: Volume, node: &Id, publication: Publication) -> io::Result<()> {
        let event = Event::now(What::Published).of_volume(&volume.id).of_node(node).reading(publication.reads_only());
        volume.published.insert(node.clone(), publication);
        write(&self.san.state(&volume.id), &volume)?;
        self.san.log(&event)
    }

    /// Takes a volume away from a node.
    pub(crate) fn unpublish(&self, mut volume: Volume, node: &Id) -> io::Result<Volume> {
        if volume.published.remove(node).is_some() {
            write(&self.san.state(&volume.id), &volume)?;
            self.san.log(&Event::now(What::Unpublished).of_volume(&volume.id).of_node(node))?;
        }
        Ok(volume)
    }
}

/// Reads a file of JSON, if it is there.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|why| named(path, &why.into())),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(named(path, &why)),
    }
}

/// Writes a file of JSON beside the old one and puts it in its place: whoever reads sees one or the other.
fn write<T: serde::Serialize>(path: &Path, value: &T) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{number}.new", std::process::id()));
    fs::write(&beside, serde_json::to_vec_pretty(value)?).map_err(|why| named(&beside, &why))?;
    fs::rename(&beside, path).map_err(|why| named(path, &why))
}

fn named(path: &Path, why: &io::Error) -> io::Error {
    io::Error::new(why.kind(), format!("{}: {why}", path.display()))
}
