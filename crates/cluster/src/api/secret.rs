//! Secrets: text that is written is kept as bytes, in the letters of base64.

use serde_json::{Value, json};

/// Takes `stringData` over into `data`, which it comes before.
pub(super) fn keep_text(secret: &mut Value) {
    let Some(text) = secret.as_object_mut().and_then(|fields| fields.remove("stringData")) else { return };
    let Value::Object(text) = text else { return };
    if !secret["data"].is_object() {
        secret["data"] = json!({});
    }
    for (name, value) in text {
        secret["data"][name] = base64(value.as_str().unwrap_or_default().as_bytes()).into();
    }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or_default()];
            out.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// The bytes that are written so; nothing if that is not how bytes are written.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::new();
    for chunk in letters.chunks(4) {
        let mut bits = 0_u32;
        for byte in chunk {
            let value = LETTERS.iter().position(|letter| letter == byte)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        bits <<= 6 * (4 - chunk.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_fours() {
        for (bytes, text) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("admin", "YWRtaW4=")] {
            assert_eq!(base64(bytes.as_bytes()), text);
            assert_eq!(super::bytes(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(super::bytes("not base64!"), None);
    }
}
