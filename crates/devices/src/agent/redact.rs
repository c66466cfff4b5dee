//! Agent / redact: what an agent says, without what it was told in confidence.
//!
//! Promise (I7): no word of an agent leaves this room before every secret of the order is taken out of it, as it stands and in
//! the forms that agents and the tools below them write it in: base64 (alone, and as a login over HTTP), percent-encoded,
//! quoted for a shell, escaped for JSON, Python or XML. Of a text that was cut, the torn end of a secret goes as well.
//! A secret of fewer than four characters would be found in every other word: a line that holds one goes as a whole.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::secret::Secret;

/// What stands where a secret stood.
const GONE: &str = "***";

/// What stands where a line stood.
const LINE_GONE: &str = "(a line was left out)";

/// Below this a secret is taken out with its whole line.
const SHORT: usize = 4;

/// Takes secrets out of texts.
#[derive(Clone, Default)]
pub(super) struct Redactor {
    /// Each form of each secret, the longest first: a form may hold another.
    forms: Vec<String>,
    short: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Takes out these secrets; `users` are the names that may stand before them in a login.
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>, users: &[&str]) -> Self {
        let mut redactor = Self::default();
        for secret in secrets {
            let value = secret.value();
            if value.is_empty() {
                continue;
            }
            if value.chars().count() < SHORT {
                redactor.short.push(value.to_owned());
            }
            redactor.forms.extend(forms(value, users));
        }
        redactor.forms.retain(|form| form.chars().count() >= SHORT);
        redactor.forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        redactor.forms.dedup();
        redactor
    }

    /// The text without secrets. `cut` says that its end was cut off.
    pub(super) fn clean(&self, text: &str, cut: bool) -> String {
        let mut text = text.to_owned();
        for form in &self.forms {
            text = text.replace(form, GONE);
        }
        if cut {
            let end = self.torn(&text);
            text.truncate(end);
        }
        if self.short.is_empty() {
            return text;
        }
        let holds = |line: &str| self.short.iter().any(|short| line.contains(short));
        let kept: Vec<&str> = text.lines().map(|line| if holds(line) { LINE_GONE } else { line }).collect();
        kept.join("\n")
    }

    /// Where a secret begins whose end was cut off, or the end of the text.
    fn torn(&self, text: &str) -> usize {
        let begins = |form: &String| {
            let mut torn = form.char_indices().rev().map(|(at, _)| &form[..at]).filter(|part| !part.is_empty());
            torn.find(|part| text.ends_with(part)).map(|part| text.len() - part.len())
        };
        self.forms.iter().filter_map(begins).min().unwrap_or(text.len())
    }
}

/// The ways in which a secret is written.
fn forms(value: &str, users: &[&str]) -> Vec<String> {
    let quote = |inner: &str| value.replace('\'', inner);
    let escaped = value.replace('\\', "\\\\");
    let xml = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut all = vec![
        value.to_owned(),
        quote("'\"'\"'"),
        quote("'\\''"),
        escaped.replace('"', "\\\""),
        escaped.replace('\'', "\\'"),
        escaped,
        xml.replace('"', "&quot;").replace('\'', "&apos;"),
        xml,
        percent(value, false, false),
        percent(value, true, false),
        percent(value, false, true),
        percent(value, true, true),
    ];
    all.extend(base64(value));
    for user in users {
        all.extend(base64(&format!("{user}:{value}")));
    }
    all
}

fn base64(text: &str) -> impl Iterator<Item = String> {
    [STANDARD.encode(text), URL_SAFE.encode(text)]
        .into_iter()
        .flat_map(|form| [form.trim_end_matches('=').to_owned(), form])
}

/// As in an address, or (`plus`) as in a form, where a blank is a plus.
fn percent(value: &str, lower: bool, plus: bool) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        let _infallible = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => write!(text, "{}", char::from(byte)),
            b' ' if plus => write!(text, "+"),
            byte if lower => write!(text, "%{byte:02x}"),
            byte => write!(text, "%{byte:02X}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With everything in it that some form writes in another way.
    const CANARY: &str = "c4n'ry <&\"\\/ é";

    fn redactor(secret: &str) -> Redactor {
        Redactor::new([&Secret::new(secret)], &["fence"])
    }

    #[test]
    fn a_secret_is_taken_out_in_every_form() {
        let redactor = redactor(CANARY);
        for form in forms(CANARY, &["fence"]) {
            let said = redactor.clean(&format!("ERROR: login with {form} was refused"), false);
            assert!(!said.contains(&form), "{form} is in {said}");
            assert!(said.starts_with("ERROR: login with ***"), "{said}");
        }
    }

    #[test]
    fn a_login_over_http_is_taken_out() {
        let said = redactor("s3cret").clean("Authorization: Basic ZmVuY2U6czNjcmV0", false);
        assert_eq!(said, "Authorization: Basic ***");
    }

    #[test]
    fn a_short_secret_takes_its_line_with_it() {
        let redactor = redactor("x1");
        assert_eq!(redactor.clean("a\ntold x1 to it\nb", false), "a\n(a line was left out)\nb");
        assert_eq!(Redactor::new([&Secret::new("")], &[]).clean("as it was", false), "as it was");
    }

    #[test]
    fn of_a_text_that_was_cut_the_torn_end_goes_too() {
        let redactor = redactor("s3cret-of-many-letters");
        assert_eq!(redactor.clean("password s3cret-of-ma", true), "password ");
        assert_eq!(redactor.clean("password s3cret-of-ma", false), "password s3cret-of-ma");
        assert_eq!(redactor.clean("nothing of it", true), "nothing of it");
    }

    #[test]
    fn nothing_of_a_secret_is_printed() {
        assert_eq!(format!("{:?}", redactor("canary")), "Redactor");
    }
}
