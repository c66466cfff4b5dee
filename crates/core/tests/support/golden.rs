//! Reads golden files, runs their cases, compares or rewrites the decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// One line of facts: `node n1 rack=a down`.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The first word: the kind of fact.
    pub kind: String,
    words: Vec<String>,
    pairs: Vec<(String, String)>,
    place: String,
}

impl Fact {
    fn parse(text: &str, place: String) -> Result<Self, String> {
        let mut tokens = tokens(text).map_err(|why| format!("{place}: {why}"))?.into_iter();
        let (kind, _) = tokens.next().ok_or_else(|| format!("{place}: an empty line of facts"))?;
        let (mut words, mut pairs) = (Vec::new(), Vec::new());
        for (token, key_ends) in tokens {
            match key_ends {
                Some(end) => pairs.push((token[..end].to_owned(), token[end + 1..].to_owned())),
                None => words.push(token),
            }
        }
        Ok(Self { kind, words, pairs, place })
    }

    /// Takes the next plain word, which has to be there.
    pub fn word(&mut self, what: &str) -> Result<String, String> {
        if self.words.is_empty() { Err(self.wrong(&format!("{what} is missing"))) } else { Ok(self.words.remove(0)) }
    }

    /// Takes a plain word if it is there: a flag.
    pub fn flag(&mut self, word: &str) -> bool {
        let found = self.words.iter().position(|w| w == word);
        found.map(|at| self.words.remove(at)).is_some()
    }

    /// Takes the text of `key=`, if it is there.
    pub fn text(&mut self, key: &str) -> Option<String> {
        let found = self.pairs.iter().position(|(k, _)| k == key);
        found.map(|at| self.pairs.remove(at).1)
    }

    /// Takes and parses the value of `key=`, if it is there.
    pub fn value<T: std::str::FromStr>(&mut self, key: &str) -> Result<Option<T>, String>
    where
        T::Err: std::fmt::Display,
    {
        let Some(text) = self.text(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|why| self.wrong(&format!("{key}={text}: {why}")))
    }

    /// Takes the value of `key=`, or the default.
    pub fn value_or<T: std::str::FromStr>(&mut self, key: &str, default: T) -> Result<T, String>
    where
        T::Err: std::fmt::Display,
    {
        Ok(self.value(key)?.unwrap_or(default))
    }

    /// Takes a comma-separated list.
    pub fn list(&mut self, key: &str) -> Vec<String> {
        self.text(key)
            .map(|text| text.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect())
            .unwrap_or_default()
    }

    /// Takes every pair that is left.
    pub fn rest(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.pairs)
    }

    /// An error that names file and line.
    pub fn wrong(&self, why: &str) -> String {
        format!("{}: `{}`: {why}", self.place, self.kind)
    }

    /// Fails if anything on the line was not understood.
    pub fn done(self) -> Result<(), String> {
        if let Some(word) = self.words.first() {
            return Err(self.wrong(&format!("nobody understands `{word}`")));
        }
        if let Some((key, _)) = self.pairs.first() {
            return Err(self.wrong(&format!("nobody understands `{key}=`")));
        }
        Ok(())
    }
}

/// Splits at blanks, keeps quoted text whole, and says where the first unquoted `=` of each token is.
fn tokens(text: &str) -> Result<Vec<(String, Option<usize>)>, String> {
    let mut all = Vec::new();
    let (mut token, mut equals, mut quoted, mut begun) = (String::new(), None, false, false);
    for c in text.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                begun = true;
            }
            ' ' if !quoted => {
                if begun {
                    all.push((std::mem::take(&mut token), equals.take()));
                    begun = false;
                }
            }
            c => {
                if c == '=' && !quoted && equals.is_none() {
                    equals = Some(token.len());
                }
                token.push(c);
                begun = true;
            }
        }
    }
    if quoted {
        return Err("a quote is not closed".to_owned());
    }
    if begun {
        all.push((token, equals));
    }
    Ok(all)
}

/// One case: its facts, and the decision that was expected.
pub struct Case {
    pub name: String,
    pub facts: Vec<Fact>,
    given: Vec<String>,
    expected: Vec<String>,
    /// Lines of the file, from the first expected line to behind the last.
    at: std::ops::Range<usize>,
}

/// Decides one case: the lines that stand behind `=>`.
pub type Runner = fn(&mut Vec<Fact>) -> Result<Vec<String>, String>;

/// What a room's cases have to show at least once: words that must appear in some decision of its files.
pub struct Room {
    /// `vet/storm` stands for `vet/storm.golden`; `vet/*` for every file of the folder that no other room names.
    pub files: &'static str,
    pub run: Runner,
    pub must_show: Vec<String>,
}

/// What stands beside the cases and is read by people only.
const NOT_CASES: &[&str] = &["README.md", "FACTS.md"];

/// Runs all files below `root`; panics with every difference, in one report.
pub fn run_all(root: &Path, rooms: &[Room]) {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (mut wrong, mut names, mut count) = (Vec::new(), BTreeMap::new(), 0);
    let mut shown: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for path in files_below(root) {
        if path.extension().is_none_or(|end| end != "golden") {
            if !path.file_name().is_some_and(|name| NOT_CASES.iter().any(|known| name == *known)) {
                wrong.push(format!("{}: no code reads this file; cases are in files named .golden", path.display()));
            }
            continue;
        }
        let name = path.strip_prefix(root).unwrap().with_extension("").to_string_lossy().into_owned();
        let Some(room) = room_of(rooms, &name) else {
            wrong.push(format!("{name}.golden: no code reads this file"));
            continue;
        };
        let text = std::fs::read_to_string(&path).unwrap();
        let (cases, mut lines) = match read(&name, &text) {
            Ok(read) => read,
            Err(why) => {
                wrong.push(why);
                continue;
            }
        };
        let mut seen_facts = BTreeMap::new();
        let mut rewritten = Vec::new();
        for mut case in cases {
            count += 1;
            if let Some(other) = names.insert(case.name.clone(), name.clone()) {
                wrong.push(format!("{name}: case `{}`: the name is taken in {other}", case.name));
            }
            if let Some(other) = seen_facts.insert(case.given.clone(), case.name.clone()) {
                wrong.push(format!("{name}: case `{}` is given the same facts as `{other}`", case.name));
            }
            match (room.run)(&mut case.facts) {
                Err(why) => wrong.push(format!("{name}: case `{}`: {why}", case.name)),
                Ok(decided) => {
                    let words =
                        decided.iter().flat_map(|line| line.split([' ', ':', ',', '(', ')'])).map(str::to_owned);
                    let moves = decided.iter().filter_map(|line| moved(line));
                    shown.entry(room.files).or_default().extend(words.chain(moves));
                    if decided != case.expected && !update {
                        wrong.push(difference(&name, &case, &decided));
                    }
                    rewritten.push((case.at, decided));
                }
            }
        }
        if update {
            for (at, decided) in rewritten.into_iter().rev() {
                lines.splice(at, decided.into_iter().map(|line| format!("  => {line}")));
            }
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
    }
    for room in rooms {
        let empty = BTreeSet::new();
        let words = shown.get(room.files).unwrap_or(&empty);
        for word in room.must_show.iter().filter(|word| !words.contains(*word)) {
            wrong.push(format!("{}: no case shows `{word}`", room.files));
        }
    }
    println!("{count} golden cases");
    assert!(wrong.is_empty(), "{} of {count} golden cases are wrong:\n\n{}\n", wrong.len(), wrong.join("\n\n"));
}

/// `A -> B`, where a line tells of a move from one to the other.
fn moved(line: &str) -> Option<String> {
    let (from, rest) = line.split_once(" -> ")?;
    let (from, to) = (from.split(' ').next_back()?, rest.split([' ', ':']).next()?);
    let phase = |word: &str| word.split('/').next().unwrap_or_default().to_owned();
    Some(format!("{} -> {}", phase(from), phase(to)))
}

fn room_of<'a>(rooms: &'a [Room], name: &str) -> Option<&'a Room> {
    let folder = name.split_once('/').map_or("", |(folder, _)| folder);
    rooms
        .iter()
        .find(|room| room.files == name)
        .or_else(|| rooms.iter().find(|room| room.files == format!("{folder}/*")))
}

fn difference(name: &str, case: &Case, decided: &[String]) -> String {
    let mut said = format!("{name}: case `{}`", case.name);
    for line in &case.expected {
        let _ = write!(said, "\n  expected => {line}");
    }
    for line in decided {
        let _ = write!(said, "\n  decided  => {line}");
    }
    said
}

fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Splits a file into cases. Also returns its lines, for rewriting.
fn read(name: &str, text: &str) -> Result<(Vec<Case>, Vec<String>), String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut cases: Vec<Case> = Vec::new();
    let mut common: Vec<(String, String)> = Vec::new();
    let mut in_common = false;
    for (index, line) in lines.iter().enumerate() {
        let place = format!("{name}.golden:{}", index + 1);
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if let Some(case) = line.strip_prefix("case ") {
            in_common = false;
            let facts =
                common.iter().map(|(text, place)| Fact::parse(text, place.clone())).collect::<Result<_, _>>()?;
            let given = common.iter().map(|(text, _)| text.clone()).collect();
            cases.push(Case {
                name: case.trim().to_owned(),
                facts,
                given,
                expected: Vec::new(),
                at: index + 1..index + 1,
            });
        } else if line == "every case" {
            in_common = true;
            common.clear();
        } else if !line.starts_with("  ") {
            return Err(format!("{place}: neither a case nor an indented line: `{line}`"));
        } else if in_common {
            common.push((trimmed.to_owned(), place));
        } else {
            let case = cases.last_mut().ok_or_else(|| format!("{place}: facts before the first case"))?;
            if let Some(decision) = trimmed.strip_prefix("=>") {
                if case.expected.is_empty() {
                    case.at = index..index;
                }
                case.expected.push(decision.trim().to_owned());
                case.at.end = index + 1;
            } else if case.expected.is_empty() {
                case.facts.push(Fact::parse(trimmed, place)?);
                case.given.push(trimmed.to_owned());
                case.at = index + 1..index + 1;
            } else {
                return Err(format!("{place}: facts after the decision"));
            }
        }
    }
    Ok((cases, lines))
}
