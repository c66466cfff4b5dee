//! Where we are: the root of the checkout, and whether a person or CI is watching.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// The checkout that this run is about.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// In CI a tier that cannot run is an error; at a desk it is skipped, loudly.
    pub(crate) ci: bool,
}

impl Workspace {
    pub(crate) fn of_this_run() -> Result<Self> {
        // Asked at run time and not with `env!`: a checkout may be moved together with its target directory.
        let own = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let root = Path::new(&own).parent().context("xtask has no workspace around it")?;
        Ok(Self { root: root.to_owned(), ci: is_ci(env::var("CI").ok().as_deref()) })
    }

    /// The cargo that started us, hence the pinned toolchain.
    pub(crate) fn cargo() -> OsString {
        env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.root.join("target"), |dir| self.root.join(dir))
    }

    /// Where tools that we build are kept: outside `target`, so that `cargo clean` does not cost minutes.
    pub(crate) fn tools(&self) -> PathBuf {
        let cache = |variable| env::var_os(variable).map(PathBuf::from).filter(|dir| dir.is_absolute());
        cache("XDG_CACHE_HOME")
            .or_else(|| cache("HOME").map(|home| home.join(".cache")))
            .map_or_else(|| self.root.join("target").join("tools"), |dir| dir.join("palisade").join("tools"))
    }
}

fn is_ci(variable: Option<&str>) -> bool {
    !matches!(variable, None | Some("" | "0" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_is_what_says_so() {
        assert!(is_ci(Some("true")));
        assert!(is_ci(Some("1")));
        assert!(!is_ci(Some("false")));
        assert!(!is_ci(Some("")));
        assert!(!is_ci(None));
    }
}
