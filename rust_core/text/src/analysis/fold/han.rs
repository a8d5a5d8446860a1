//! Traditional, simplified and Japanese forms of Han characters.

/// Pairs of a character and the form that stands for it, as 16-bit little-endian code points in ascending order.
const TABLE: &[u8] = include_bytes!("../han_variants.bin");
const PAIR: usize = 4;

/// The form of a character that words are compared in: the simplified one where there is one.
pub(super) fn simplified(character: char) -> char {
    let (pairs, _) = TABLE.as_chunks::<PAIR>();
    let Ok(code) = u16::try_from(u32::from(character)) else {
        return character;
    };
    pairs
        .binary_search_by_key(&code, |pair| u16::from_le_bytes([pair[0], pair[1]]))
        .ok()
        .and_then(|at| char::from_u32(u32::from(u16::from_le_bytes([pairs[at][2], pairs[at][3]]))))
        .unwrap_or(character)
}

#[cfg(test)]
mod tests {
    use super::{PAIR, TABLE, simplified};

    #[test]
    fn both_forms_become_one() {
        for (traditional, plain) in "臺灣國學書門東車後龍體圖氣發說裡裏"
            .chars()
            .zip("台湾国学书门东车后龙体图气发说里里".chars())
        {
            assert_eq!(simplified(traditional), plain);
            assert_eq!(simplified(plain), plain);
        }
        for (japanese, older) in "竜沢桜広鉄関気売亜円真塩辺斎検"
            .chars()
            .zip("龍澤櫻廣鐵關氣賣亞圓眞鹽邊齋檢".chars())
        {
            assert_eq!(simplified(japanese), simplified(older), "{japanese}");
        }
        assert_ne!(simplified('斎'), simplified('斉'));
        assert_eq!(simplified('山'), '山');
        assert_eq!(simplified('\u{20000}'), '\u{20000}');
    }

    #[test]
    fn the_table_ascends_and_has_no_chains() {
        let (pairs, rest) = TABLE.as_chunks::<PAIR>();
        assert!(rest.is_empty());
        assert!(pairs.is_sorted_by_key(|pair| u16::from_le_bytes([pair[0], pair[1]])));
        for pair in pairs {
            let form = char::from_u32(u32::from(u16::from_le_bytes([pair[2], pair[3]])))
                .expect("a character");
            assert_eq!(simplified(form), form);
        }
    }
}
