//! Links in Markdown lead somewhere: to a committed file or folder, and to a heading that exists.
//!
//! Never: looks at the network. A link with a scheme (`https:`, `mailto:`) is left alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::{
    files::{self, Finding},
    workspace::Workspace,
};

/// Every relative link of a committed `*.md` that leads nowhere.
pub(crate) fn broken(workspace: &Workspace) -> Result<Vec<Finding>> {
    let paths = files::committed(workspace)?;
    let mut pages = BTreeMap::new();
    for file in paths.iter().filter(|file| is_page(file)) {
        pages.insert(file.clone(), files::text(workspace, file)?.unwrap_or_default());
    }
    let place = Place { paths: paths.into_iter().collect(), pages };
    println!(
        "{} links in {} pages",
        place.pages.values().map(|text| links(text).len()).sum::<usize>(),
        place.pages.len()
    );
    Ok(place.broken())
}

fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md")
}

/// All that a relative link could mean.
struct Place {
    paths: BTreeSet<PathBuf>,
    pages: BTreeMap<PathBuf, String>,
}

impl Place {
    fn broken(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (page, text) in &self.pages {
            for Link { line, target } in links(text) {
                if let Err(what) = self.follow(page, &target) {
                    findings.push(Finding { file: page.clone(), line, what });
                }
            }
        }
        findings
    }

    fn follow(&self, page: &Path, target: &str) -> Result<(), String> {
        if has_scheme(target) {
            return Ok(());
        }
        let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
        let from = page.parent().unwrap_or(Path::new(""));
        let file = match path.strip_prefix('/') {
            _ if path.is_empty() => Some(page.to_owned()),
            // As the forges read it: from the root of the repository.
            Some(absolute) => files::normalised(Path::new(absolute)),
            None => files::normalised(&from.join(path)),
        };
        let file = file.ok_or_else(|| format!("leaves the repository: {target}"))?;
        if !self.is_there(&file) {
            return Err(format!("no such file: {target}"));
        }
        match (anchor, self.pages.get(&file)) {
            (Some(anchor), Some(text)) if !anchors(text).contains(anchor) => Err(format!("no such heading: {target}")),
            _ => Ok(()),
        }
    }

    fn is_there(&self, path: &Path) -> bool {
        // A folder is there if a committed file is in it.
        path == Path::new("") || self.paths.range(path.to_owned()..).next().is_some_and(|next| next.starts_with(path))
    }
}

fn has_scheme(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Link {
    line: usize,
    target: String,
}

/// The targets of `[text](target "title")`, `![image](target)` and `[label]: target`, outside of code.
fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, prose) in prose(text) {
        let prose = without_code(prose);
        let mut add = |target: &str| {
            let target = target.split_whitespace().next().unwrap_or("");
            let target = target.trim_start_matches('<').trim_end_matches('>');
            if !target.is_empty() {
                found.push(Link { line, target: target.to_owned() });
            }
        };
        if let Some(target) = definition(&prose) {
            add(target);
        }
        let mut rest = prose.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let end = closing_parenthesis(after);
            add(&after[..end]);
            rest = &after[end..];
        }
    }
    found
}

/// Lines outside of fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(opened)) => fence = Some(opened),
            (Some(open), Some(closed)) if open == closed => fence = None,
            (None, None) => return true,
            (Some(_), _) => {}
        }
        false
    })
}

/// The line without its `code`: an odd number of backticks leaves the last one as it is.
fn without_code(line: &str) -> String {
    let parts: Vec<_> = line.split('`').collect();
    let closed = parts.len() - 1 + parts.len() % 2;
    let keep = |(index, part): (usize, &&str)| if index % 2 == 0 || index >= closed { *part } else { "" }.to_owned();
    parts.iter().enumerate().map(keep).collect()
}

fn definition(line: &str) -> Option<&str> {
    let (label, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    (!label.contains(']')).then_some(target)
}

/// Where the parenthesis that is already open closes; the end of the text if it never does.
fn closing_parenthesis(text: &str) -> usize {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The names that headings can be linked by, as the forges make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(heading) = heading(line) else {
            continue;
        };
        let name = slug(heading);
        let earlier = seen.entry(name.clone()).or_default();
        names.insert(if *earlier == 0 { name } else { format!("{name}-{earlier}") });
        *earlier += 1;
    }
    names
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - title.len())).then_some(title)?.strip_prefix(' ')
}

fn slug(heading: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let dashed = |c: char| if c == ' ' { '-' } else { c };
    heading.trim().to_lowercase().chars().filter(|&c| kept(c)).map(dashed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(files: &[(&str, &str)]) -> Place {
        let pages = files.iter().filter(|(name, _)| is_page(Path::new(name)));
        Place {
            paths: files.iter().map(|(name, _)| PathBuf::from(name)).collect(),
            pages: pages.map(|(name, text)| (PathBuf::from(name), (*text).to_owned())).collect(),
        }
    }

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        place(files).broken().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_hold() {
        let readme = "[a](docs/a.md) [up](docs/) [b](docs/a.md#the-one-idea) [here](#title)\n# Title\n";
        let page = "## The one idea\n[back](../README.md) [root](/README.md \"title\") [out](https://example.org)\n";
        assert_eq!(complaints(&[("README.md", readme), ("docs/a.md", page)]), [""; 0]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named_with_its_line() {
        let readme = "fine\n[a](gone.md)\n![b](../outside.png)\n[c](#nowhere)\n\n[ref]: lost.txt\n";
        assert_eq!(
            complaints(&[("README.md", readme)]),
            [
                "README.md:2: no such file: gone.md",
                "README.md:3: leaves the repository: ../outside.png",
                "README.md:4: no such heading: #nowhere",
                "README.md:6: no such file: lost.txt",
            ]
        );
    }

    #[test]
    fn part_of_a_name_is_not_the_name() {
        let files = [("README.md", "[a](docs)"), ("docs-old/a.txt", "")];
        assert_eq!(complaints(&files), ["README.md:1: no such file: docs"]);
    }

    #[test]
    fn code_is_not_a_link() {
        let page = "`[a](x.md)` and ``\n```\n[b](y.md)\n~~~\n```\nindex[0](z)\n";
        let found: Vec<_> = links(page).into_iter().map(|link| link.target).collect();
        assert_eq!(found, ["z"]);
    }

    #[test]
    fn parentheses_inside_a_target_belong_to_it() {
        let found = links("see [a](b_(c).md), (really)");
        assert_eq!(found, [Link { line: 1, target: "b_(c).md".into() }]);
    }

    #[test]
    fn headings_become_names_as_on_the_forges() {
        let names = anchors("# Isolate & prove\n## `cargo xtask test`\n## Twice\n## Twice\n#no heading\n");
        let expected = ["cargo-xtask-test", "isolate--prove", "twice", "twice-1"];
        assert_eq!(names.into_iter().collect::<Vec<_>>(), expected);
    }
}
