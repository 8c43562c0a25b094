//! Names of files and folders that are made of what came from outside: an id, a path.
//!
//! - Each is one path component, never a special or hidden one, whatever it is made of.
//! - They are stable over releases: other programs and later hosts find files by them.

use std::{os::unix::ffi::OsStrExt as _, path::Path};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Everything but letters, digits, `-`, `_` and `.`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// Bytes of an encoded name, the hash apart.
const MAX_NAME: usize = 64;

/// The id itself where it is a harmless file name, else as [`of_path`].
pub fn of_id(id: &str) -> String {
    let harmless = !id.starts_with('.')
        && id.len() <= MAX_NAME
        && percent_encode(id.as_bytes(), ESCAPED).eq([id]);
    if harmless { id.to_owned() } else { hashed(id.as_bytes()) }
}

/// Percent-encoded, cut to its end, which tells paths apart best, plus a hash of the whole.
pub fn of_path(path: &Path) -> String {
    hashed(path.as_os_str().as_bytes())
}

/// FNV-1a, 64 bits: fixed for ever, unlike the hashers of the standard library.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn hashed(bytes: &[u8]) -> String {
    let encoded = percent_encode(bytes, ESCAPED).to_string();
    let mut start = encoded.len().saturating_sub(MAX_NAME);
    // Not inside of a `%2F`.
    if start > 0 {
        for back in 1..=2 {
            if encoded.as_bytes().get(start - back) == Some(&b'%') {
                start += 3 - back;
                break;
            }
        }
    }
    let name = encoded.get(start..).unwrap_or_default();
    let (dot, name) = name.strip_prefix('.').map_or(("", name), |rest| ("%2E", rest));
    format!("{dot}{name}-{:016x}", hash(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_component_and_never_change() {
        let table = [
            ("main", "main"),
            ("a-b_c.d", "a-b_c.d"),
            ("..", "%2E.-07da1a07b4a03f2d"),
            (".x", "%2Ex-07da4407b4a0868b"),
            ("a/b", "a%2Fb-e620c3190468cf61"),
            ("a%2Fb", "a%252Fb-f09212efbcdd6ebf"),
            ("é", "%C3%A9-0ac21707b7181e01"),
        ];
        for (id, name) in table {
            assert_eq!(of_id(id), name, "{id}");
        }
        assert_eq!(hashed(b"/home/u/p"), "%2Fhome%2Fu%2Fp-7ca9541b13084e72");
    }

    #[test]
    fn long_names_are_cut_between_escapes() {
        for pad in 0..4 {
            let path = format!("{}{}", "x".repeat(pad), "/é".repeat(40));
            let name = hashed(path.as_bytes());
            let (shown, hash) = name.rsplit_once('-').unwrap();
            assert!(shown.len() <= MAX_NAME && shown.len() > MAX_NAME - 3, "{name}");
            assert_eq!(hash.len(), 16);
            let decoded: Vec<u8> = percent_encoding::percent_decode_str(shown).collect();
            assert!(path.as_bytes().ends_with(&decoded), "{name}");
        }
        let long = "a".repeat(300);
        assert_eq!(of_id(&long).len(), MAX_NAME + 17);
        assert_ne!(of_id(&long), of_id(&"a".repeat(301)));
    }
}
