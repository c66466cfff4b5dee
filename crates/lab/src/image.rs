//! Image: what the lab's containers run, as archives that `ctr image import` takes. There is no registry here.
//!
//! One holds Palisade as users deploy it, the fence agents and a shell to look around, one the writer of the stories, one what a
//! sandbox needs.

mod packages;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::tool::call;

/// What holds a pod's namespaces.
pub const PAUSE: &str = "palisade.dev/lab/pause:1";
/// Palisade.
pub const PALISADE: &str = "ghcr.io/palisade-dev/palisade:0.1.0";
/// What the stories' pods run.
pub const WRITER: &str = "example.com/writer:1";

/// Appends its name to the volume five times a second, or idles where there is none.
const WRITER_SCRIPT: &str = r#"#!/bin/sh
# A line is one write: which node, which pod. The order of the lines is the truth.
trap 'exit 0' TERM INT
while :; do
    if [ -d /data ]; then echo "$NODE_NAME $POD_UID" >> /data/writes.log; fi
    sleep 0.2 &
    wait $!
done
"#;

/// An agent that lies: whatever it is told, it says that it was done, and does nothing.
const LIAR_SCRIPT: &str = r#"#!/bin/sh
action="$*"
while read -r line; do
    case "$line" in action=*) action="${line#action=}" ;; esac
done
case "$action" in
*metadata*)
    echo '<?xml version="1.0" ?>'
    echo '<resource-agent name="fence_liar" shortdesc="Says yes"><longdesc>Says yes.</longdesc><parameters>'
    for name in action ip username password plug; do
        echo "<parameter name=\"$name\"><content type=\"string\"/></parameter>"
    done
    echo '</parameters><actions><action name="on"/><action name="off"/><action name="status"/>'
    echo '<action name="metadata"/></actions></resource-agent>'
    ;;
*) echo "Success: Powered OFF" ;;
esac
exit 0
"#;

/// Writes the archives into this directory.
pub fn write(into: &Path, palisade: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    let scratch = into.join("scratch");
    let tools = Rootfs::new(&scratch.join("tools"))?;
    tools.busybox()?;
    tools.script("bin/writer", WRITER_SCRIPT)?;
    tools.archive(&into.join("pause.tar"), PAUSE, &["/bin/sleep", "2147483647"])?;
    tools.archive(&into.join("writer.tar"), WRITER, &["/bin/writer"])?;
    let ours = Rootfs::new(&scratch.join("palisade"))?;
    ours.busybox()?;
    ours.program(palisade, "usr/bin/palisade")?;
    packages::copy(packages::AGENTS, &ours.at)?;
    ours.script("usr/sbin/fence_liar", LIAR_SCRIPT)?;
    ours.archive(&into.join("palisade.tar"), PALISADE, &["/usr/bin/palisade"])?;
    fs::remove_dir_all(&scratch).context("cannot clean up after the images")
}

/// A file system in the making.
struct Rootfs {
    at: PathBuf,
}

impl Rootfs {
    fn new(at: &Path) -> Result<Self> {
        for part in ["bin", "etc", "tmp", "usr/bin"] {
            fs::create_dir_all(at.join(part))?;
        }
        fs::set_permissions(at.join("tmp"), fs::Permissions::from_mode(0o1777))?;
        fs::write(at.join("etc/passwd"), "root:x:0:0::/:/bin/sh\npalisade:x:65532:65532::/:/bin/sh\n")?;
        fs::write(at.join("etc/group"), "root:x:0:\npalisade:x:65532:\n")?;
        Ok(Self { at: at.to_owned() })
    }

    /// A shell and what one needs to look around.
    fn busybox(&self) -> Result<()> {
        let busybox = self.at.join("bin/busybox");
        fs::copy("/bin/busybox", &busybox).context("cannot read /bin/busybox; install the package busybox-static")?;
        for name in ["sh", "cat", "date", "echo", "env", "ls", "ps", "sleep", "tail", "wget"] {
            symlink("busybox", self.at.join("bin").join(name))?;
        }
        Ok(())
    }

    fn script(&self, at: &str, text: &str) -> Result<()> {
        fs::write(self.at.join(at), text)?;
        fs::set_permissions(self.at.join(at), fs::Permissions::from_mode(0o755)).context("cannot make it executable")
    }

    /// A program with the libraries that it is linked to.
    fn program(&self, program: &Path, at: &str) -> Result<()> {
        let (shown, to) = (program.display().to_string(), self.at.join(at).display().to_string());
        // Without the tables of a debugger it is a fifth of its size, four times over.
        call("strip", ["-o", &to, &shown])?;
        for word in call("ldd", [&shown])?.split_whitespace().filter(|word| word.starts_with('/')) {
            let library = Path::new(word);
            let target = self.at.join(word.trim_start_matches('/'));
            if let Some(dir) = target.parent() {
                fs::create_dir_all(dir)?;
            }
            fs::copy(library, target).with_context(|| format!("cannot read {}", library.display()))?;
        }
        Ok(())
    }

    /// As `docker save` writes it: one layer, a config, a manifest.
    fn archive(&self, to: &Path, name: &str, entry: &[&str]) -> Result<()> {
        let parts = to.with_extension("parts");
        fs::create_dir_all(&parts)?;
        let layer = parts.join("layer.tar");
        let (from, layer_at) = (self.at.display().to_string(), layer.display().to_string());
        call("tar", ["--owner=0", "--group=0", "--mtime=@0", "--sort=name", "-cf", &layer_at, "-C", &from, "."])?;
        let sum = call("sha256sum", [&layer_at])?;
        let digest = format!("sha256:{}", sum.split_whitespace().next().unwrap_or_default());
        let config = json!({
            "architecture": architecture(), "os": "linux",
            "config": { "Entrypoint": entry, "Env": ["PATH=/bin:/usr/bin:/sbin:/usr/sbin"], "WorkingDir": "/" },
            "rootfs": { "type": "layers", "diff_ids": [digest] },
        });
        fs::write(parts.join("config.json"), config.to_string())?;
        let manifest = json!([{ "Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"] }]);
        fs::write(parts.join("manifest.json"), manifest.to_string())?;
        let (to, parts_at) = (to.display().to_string(), parts.display().to_string());
        call("tar", ["-cf", &to, "-C", &parts_at, "manifest.json", "config.json", "layer.tar"])?;
        fs::remove_dir_all(&parts).context("cannot clean up after an image")
    }
}

/// As images call it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
