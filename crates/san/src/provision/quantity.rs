//! Quantity: how many bytes `1.5Gi` are.

/// The bytes that a quantity means, rounded up; nothing if it means none that we could count.
pub(super) fn bytes(text: &str) -> Option<i64> {
    let end = text.find(|one: char| !one.is_ascii_digit() && one != '.' && one != '+').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.trim_start_matches('+').split_once('.').unwrap_or((number.trim_start_matches('+'), ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let (up, down) = factor(suffix)?;
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    let down = 10_u128.checked_pow(u32::try_from(part.len()).ok()?)?.checked_mul(down)?;
    i64::try_from(digits.checked_mul(up)?.div_ceil(down)).ok()
}

/// By how much a suffix multiplies, and by how much it divides.
fn factor(suffix: &str) -> Option<(u128, u128)> {
    let binary = |power: u32| Some((1_u128 << (10 * power), 1));
    let decimal = |power: u32| Some((10_u128.pow(power), 1));
    match suffix {
        "" => decimal(0),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1_000)),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        other => {
            let power: i32 = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            let ten = 10_u128.checked_pow(power.unsigned_abs())?;
            Some(if power < 0 { (1, ten) } else { (ten, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_as_people_write_them() {
        let table = [
            ("0", Some(0)),
            ("1", Some(1)),
            ("1Ki", Some(1024)),
            ("1.5Gi", Some(1_610_612_736)),
            ("10Gi", Some(10 << 30)),
            ("1G", Some(1_000_000_000)),
            ("1e3", Some(1_000)),
            ("1E3", Some(1_000)),
            ("2E", Some(2_000_000_000_000_000_000)),
            ("500m", Some(1)),
            ("1500m", Some(2)),
            (".5Ki", Some(512)),
            ("+5", Some(5)),
            ("8Ei", None),
            ("-1", None),
            ("", None),
            ("Gi", None),
            ("1 Gi", None),
            ("1GiB", None),
        ];
        for (text, expected) in table {
            assert_eq!(bytes(text), expected, "{text:?}");
        }
    }
}
