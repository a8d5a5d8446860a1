//! Addresses of coins: `Base58Check`, Bech32 and Bech32m with their checks, and hexadecimal Ethereum addresses.

use sha2::{Digest, Sha256};

use super::kinds::Kind;
use super::runs::{Run, has};
use super::view::View;

const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
/// Bytes of a version, a hash and four of check.
const PAYLOAD: usize = 25;

/// Scans one run.
pub(super) fn search(view: &mut View<'_>, run: Run) {
    if !view.wants(Kind::CryptoAddress)
        || run.made_of & has::OTHER != 0
        || !view.ends(run.end, true)
    {
        return;
    }
    let text = view.slice(run.start, run.end);
    let confidence = match (run.len(), text) {
        (42, [b'0', b'x', rest @ ..]) if rest.iter().all(u8::is_ascii_hexdigit) => 0.7,
        (26..=35, [b'1' | b'3' | b'L' | b'M' | b'D' | b'T', ..]) if base58check(text) => 0.98,
        (
            14..=90,
            [b'b' | b'B', b'c' | b'C', b'1', ..]
            | [b'l' | b'L', b't' | b'T', b'c' | b'C', b'1', ..],
        ) if bech32(text) => 0.98,
        _ => return,
    };
    view.note(Kind::CryptoAddress, run.start, run.end, confidence);
}

/// 25 bytes, the last four the start of a double SHA-256 of the others.
fn base58check(text: &[u8]) -> bool {
    // Big-endian limbs of 32 bits; 25 bytes and a spill.
    let mut limbs = [0u32; 7];
    for byte in text {
        let Some(value) = BASE58.iter().position(|one| one == byte) else {
            return false;
        };
        let mut carry = value as u64;
        for limb in limbs.iter_mut().rev() {
            carry += u64::from(*limb) * 58;
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            return false;
        }
    }
    let mut bytes = [0u8; 28];
    for (four, limb) in bytes.chunks_exact_mut(4).zip(limbs) {
        four.copy_from_slice(&limb.to_be_bytes());
    }
    let (spill, payload) = bytes.split_at(bytes.len() - PAYLOAD);
    let (body, check) = payload.split_at(PAYLOAD - 4);
    spill.iter().all(|&byte| byte == 0) && Sha256::digest(Sha256::digest(body))[..4] == *check
}

/// BIP 173 and BIP 350.
fn bech32(text: &[u8]) -> bool {
    const GENERATOR: [u32; 5] = [
        0x3b6a_57b2,
        0x2650_8e6d,
        0x1ea1_19fa,
        0x3d42_33dd,
        0x2a14_62b3,
    ];
    let mixed = text.iter().any(u8::is_ascii_uppercase) && text.iter().any(u8::is_ascii_lowercase);
    let Some(one) = text.iter().rposition(|&byte| byte == b'1') else {
        return false;
    };
    if mixed {
        return false;
    }
    let step = |rest: u32, value: u32| {
        let top = rest >> 25;
        GENERATOR.iter().enumerate().fold(
            (rest & 0x1ff_ffff) << 5 ^ value,
            |rest, (bit, generator)| {
                if top >> bit & 1 == 1 {
                    rest ^ generator
                } else {
                    rest
                }
            },
        )
    };
    let lower = |byte: &u8| u32::from(byte.to_ascii_lowercase());
    let prefix = &text[..one];
    let mut rest = prefix
        .iter()
        .fold(1, |rest, byte| step(rest, lower(byte) >> 5));
    rest = step(rest, 0);
    rest = prefix
        .iter()
        .fold(rest, |rest, byte| step(rest, lower(byte) & 31));
    for byte in &text[one + 1..] {
        let Some(value) = BECH32
            .iter()
            .position(|one| *one == byte.to_ascii_lowercase())
        else {
            return false;
        };
        rest = step(rest, value as u32);
    }
    matches!(rest, 1 | 0x2bc8_30a3)
}

#[cfg(test)]
mod tests {
    use super::{base58check, bech32};

    #[test]
    fn published_addresses_pass_and_changed_ones_do_not() {
        assert!(base58check(b"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"));
        assert!(!base58check(b"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb"));
        assert!(bech32(b"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"));
        assert!(bech32(
            b"bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"
        ));
        assert!(!bech32(b"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"));
    }
}
