//! Story / words: what an object says, as a person would say it: `1 pod is`, `10.5 s`.

/// Words for one thing, and how they end.
const ONE: [(&str, &str); 8] = [
    ("1 pods are", "1 pod is"),
    ("1 volumes have", "1 volume has"),
    ("1 renewals", "1 renewal"),
    ("1 tries", "1 try"),
    ("1 rounds", "1 round"),
    ("1 nodes are", "1 node is"),
    ("1 pods", "1 pod"),
    ("1 volumes", "1 volume"),
];

/// The same, for people.
pub(super) fn plain(text: &str) -> String {
    let words: Vec<String> = text.split(' ').map(|word| span(word).unwrap_or_else(|| word.to_owned())).collect();
    let mut text = words.join(" ");
    for (many, one) in ONE {
        for (at, _) in text.clone().match_indices(many).collect::<Vec<_>>().into_iter().rev() {
            // Not the end of 11 or 21.
            if !text[..at].ends_with(|before: char| before.is_ascii_digit()) {
                text.replace_range(at..at + many.len(), one);
            }
        }
    }
    text
}

/// `10s468ms` is `10.5 s`; whole seconds, minutes and everything else stay as they are.
fn span(word: &str) -> Option<String> {
    let body = word.trim_end_matches([',', ';', ')', '.']);
    let (seconds, millis) = body.strip_suffix("ms")?.split_once('s')?;
    let (seconds, millis) = (seconds.parse::<u32>().ok()?, millis.parse::<u32>().ok()?);
    let time = f64::from(seconds) + f64::from(millis) / 1000.0;
    Some(format!("{time:.1} s{}", &word[body.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many_and_milliseconds_are_nobodys_business() {
        let said = "not renewed for 10s468ms (1 renewals missed), seconded by bmc-power";
        assert_eq!(plain(said), "not renewed for 10.5 s (1 renewal missed), seconded by bmc-power");
        assert_eq!(plain("1 pods are to be released"), "1 pod is to be released");
        assert_eq!(plain("bmc is tried again, 1 tries so far"), "bmc is tried again, 1 try so far");
    }

    #[test]
    fn everything_else_stays() {
        for said in ["11 pods are to be released", "21 renewals", "for 20s, as ms", "s5ms", "every 15s"] {
            assert_eq!(plain(said), said);
        }
    }
}
