//! The text cut into runs of letters and digits, on which every detector works.

/// The characters of a run.
pub(super) mod has {
    pub(crate) const DIGIT: u8 = 1;
    pub(crate) const UPPER: u8 = 2;
    pub(crate) const LOWER: u8 = 4;
    /// A character outside ASCII. A run has either only these or none.
    pub(crate) const OTHER: u8 = 8;
    /// A letter beyond f.
    pub(crate) const BEYOND_HEX: u8 = 16;
}

/// A longest run of ASCII letters and digits, or of characters outside ASCII.
///
/// Identifiers are ASCII. Scripts without spaces, particles and accented letters stand right beside them, so the border
/// between the two kinds ends a run as a space does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The classes of its characters, from [`has`].
    pub(super) made_of: u8,
}

impl Run {
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }

    pub(super) fn is_digits(self) -> bool {
        self.made_of == has::DIGIT
    }

    pub(super) fn is_hex(self) -> bool {
        self.made_of & (has::BEYOND_HEX | has::OTHER) == 0
    }
}

/// Per byte: the class that it adds to a run, 0 for a byte that ends one.
const CLASSES: [u8; 256] = {
    let mut classes = [0u8; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => has::DIGIT,
            b'A'..=b'F' => has::UPPER,
            b'G'..=b'Z' => has::UPPER | has::BEYOND_HEX,
            b'a'..=b'f' => has::LOWER,
            b'g'..=b'z' => has::LOWER | has::BEYOND_HEX,
            128.. => has::OTHER | has::BEYOND_HEX,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// All runs in order.
pub(super) fn cut(bytes: &[u8]) -> Vec<Run> {
    let mut runs = Vec::with_capacity(bytes.len() / 5 + 1);
    let mut start = 0;
    let mut made_of = 0;
    for (place, &byte) in bytes.iter().enumerate() {
        let class = CLASSES[usize::from(byte)];
        if class == 0 {
            if made_of != 0 {
                runs.push(Run {
                    start,
                    end: place,
                    made_of,
                });
            }
            made_of = 0;
        } else {
            let crosses = made_of != 0 && (made_of ^ class) & has::OTHER != 0;
            if crosses {
                runs.push(Run {
                    start,
                    end: place,
                    made_of,
                });
                made_of = 0;
            }
            if made_of == 0 {
                start = place;
            }
            made_of |= class;
        }
    }
    if made_of != 0 {
        runs.push(Run {
            start,
            end: bytes.len(),
            made_of,
        });
    }
    runs
}

/// Returns true if the text may contain a finding: it has a digit, or a mark that every other kind needs.
pub(super) fn promising(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .any(|byte| matches!(byte, b'0'..=b'9' | b'@' | b':' | b'='))
}

/// An ASCII letter or digit, which continues a number or an identifier.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}
