//! Mounts: directories that show what another directory holds.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use palisade_csi::Status;
use rustix::fs::{StatVfs, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

/// How many mounts on top of each other are taken away; more than one is left only by somebody who did not look first.
const DEEPEST: usize = 16;

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    /// Nothing.
    Nothing,
    /// Something that is not this directory.
    Another,
    /// This directory.
    This {
        /// It cannot be written to.
        readonly: bool,
    },
}

/// Whether a path shows a directory: a bind mount is the very same directory in another place.
pub(super) fn look(directory: &Path, path: &Path) -> Result<There, Status> {
    let seen = match fs::metadata(path) {
        Ok(seen) => seen,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(There::Nothing),
        Err(why) => return Err(failed("look at", path, &why)),
    };
    let meant = fs::metadata(directory).map_err(|why| failed("look at", directory, &why))?;
    if (seen.dev(), seen.ino()) != (meant.dev(), meant.ino()) {
        return Ok(There::Another);
    }
    let readonly = room(path)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    Ok(There::This { readonly })
}

/// Shows a directory at a path, which is there.
pub(super) fn bind(directory: &Path, path: &Path, readonly: bool) -> Result<(), Status> {
    let (from, to) = (c_string(directory)?, c_string(path)?);
    rustix::mount::mount_bind(from.as_c_str(), to.as_c_str()).map_err(|why| failed("mount", path, &why.into_io()))?;
    if !readonly {
        return Ok(());
    }
    // The kernel takes no other flag on the first call.
    let flags = MountFlags::BIND | MountFlags::RDONLY;
    rustix::mount::mount_remount(to.as_c_str(), flags, c"").map_err(|why| {
        // Rather not at all than writable.
        let undone = rustix::mount::unmount(to.as_c_str(), UnmountFlags::DETACH);
        tracing::error!(path = %path.display(), %why, ?undone, "could not be made read-only; taken away again");
        failed("mount read-only", path, &why.into_io())
    })
}

/// Takes away whatever is mounted at a path, and says whether there was anything. Nothing is fine.
pub(super) fn unmount(path: &Path) -> Result<bool, Status> {
    let at = c_string(path)?;
    for count in 0..DEEPEST {
        match rustix::mount::unmount(at.as_c_str(), UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            // It is no mount, or there is nothing.
            Err(Errno::INVAL | Errno::NOENT) => return Ok(count > 0),
            Err(Errno::BUSY) => {
                let why = format!("{} is in use by a process of this node: stop it first", path.display());
                return Err(Status::failed_precondition(why));
            }
            Err(why) => return Err(failed("unmount", path, &why.into_io())),
        }
    }
    Err(Status::internal(format!("more than {DEEPEST} mounts at {}", path.display())))
}

/// How much room there is where a path leads to.
pub(super) fn room(path: &Path) -> Result<StatVfs, Status> {
    let at = c_string(path)?;
    rustix::fs::statvfs(at.as_c_str()).map_err(|why| failed("look at", path, &why.into_io()))
}

pub(super) fn failed(act: &str, path: &Path, why: &io::Error) -> Status {
    Status::internal(format!("could not {act} {}: {why}", path.display()))
}

fn c_string(path: &Path) -> Result<CString, Status> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Status::invalid_argument("a path with a zero in it"))
}

/// rustix is built without `std`, so it cannot say this itself.
trait IntoIo {
    fn into_io(self) -> io::Error;
}

impl IntoIo for Errno {
    fn into_io(self) -> io::Error {
        io::Error::from_raw_os_error(self.raw_os_error())
    }
}
