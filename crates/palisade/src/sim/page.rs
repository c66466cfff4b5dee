//! Sim / page: lines that a person can read at 120 columns.

/// How wide a page is.
const WIDTH: usize = 120;

/// The same line, broken between words where it is too wide; what follows stands below its text.
pub(super) fn fold(line: &str, indent: usize) -> String {
    let mut page = String::new();
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let wide = word.trim_end().chars().count();
        if column > indent && column + wide > WIDTH {
            page.truncate(page.trim_end().len());
            page.push('\n');
            page.push_str(&" ".repeat(indent));
            column = indent;
        }
        page.push_str(word);
        column += word.chars().count();
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_folded_between_words_and_none_is_lost() {
        let line = format!("  12 palisade-0  {}", "word ".repeat(60));
        let page = fold(line.trim_end(), 17);
        assert!(page.lines().count() > 2);
        assert!(page.lines().all(|line| line.chars().count() <= WIDTH), "{page}");
        assert!(page.lines().skip(1).all(|line| line.starts_with(&" ".repeat(17)) && !line.ends_with(' ')));
        assert_eq!(page.split_whitespace().count(), 62);
    }

    #[test]
    fn a_short_line_and_one_without_a_gap_stay_as_they_are() {
        assert_eq!(fold("a  b", 2), "a  b");
        let endless = "x".repeat(300);
        assert_eq!(fold(&endless, 4), endless);
    }
}
