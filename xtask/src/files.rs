//! The files that are, or are about to be, committed; and how a complaint about one of them looks.

use std::{
    fmt, fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{run::Call, workspace::Workspace};

/// Something wrong in one line of one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// Prints the findings; the summary is why the step failed, and `None` if it did not.
pub(crate) fn complain(findings: &[Finding]) -> Option<String> {
    for finding in findings {
        println!("{finding}");
    }
    (!findings.is_empty()).then(|| format!("{} found, see above", findings.len()))
}

/// Every file that git tracks or would add, relative to the root. What is ignored is nobody's business.
pub(crate) fn committed(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let listed = Call::new(workspace, "git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("cannot list the files of this checkout")?;
    let mut files: Vec<_> = listed
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        // Deleted, but the deletion is not committed yet.
        .filter(|file| workspace.root.join(file).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The text of a file, or `None` if it is no text.
pub(crate) fn text(workspace: &Workspace, file: &Path) -> Result<Option<String>> {
    let bytes = fs::read(workspace.root.join(file)).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')))
}

/// Resolves `.` and `..` by name alone; `None` if the path leaves the checkout.
pub(crate) fn normalised(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_followed_by_name_and_stays_inside() {
        assert_eq!(normalised(Path::new("docs/../crates/./core")), Some("crates/core".into()));
        assert_eq!(normalised(Path::new("docs/../../elsewhere")), None);
        assert_eq!(normalised(Path::new("/etc")), None);
    }

    #[test]
    fn a_finding_can_be_clicked() {
        let finding = Finding { file: "README.md".into(), line: 7, what: "no such file: X.md".into() };
        assert_eq!(finding.to_string(), "README.md:7: no such file: X.md");
    }
}
