//! Languages whose words are stemmed, and which of them a word is of.

use rust_stemmers::Algorithm;

macro_rules! languages {
    ($($(#[$attribute:meta])* $variant:ident $name:literal $algorithm:expr,)+) => {
        /// The language of the Latin words of a bank. Words of scripts that one of the languages mostly uses are stemmed as
        /// that language's, whatever the bank's is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
        #[repr(u8)]
        pub enum Language {
            $($(#[$attribute])* #[doc = concat!("Called `", $name, "`.")] $variant,)+
        }

        impl Language {
            /// All languages.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];
            pub(super) const COUNT: usize = Self::ALL.len();

            /// The name in settings.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            fn algorithm(self) -> Option<Algorithm> {
                match self { $(Self::$variant => $algorithm,)+ }
            }
        }
    };
}

languages! {
    #[default] English "english" Some(Algorithm::English),
    Danish "danish" Some(Algorithm::Danish),
    Dutch "dutch" Some(Algorithm::Dutch),
    Finnish "finnish" Some(Algorithm::Finnish),
    French "french" Some(Algorithm::French),
    German "german" Some(Algorithm::German),
    Hungarian "hungarian" Some(Algorithm::Hungarian),
    Italian "italian" Some(Algorithm::Italian),
    Norwegian "norwegian" Some(Algorithm::Norwegian),
    Portuguese "portuguese" Some(Algorithm::Portuguese),
    Romanian "romanian" Some(Algorithm::Romanian),
    Spanish "spanish" Some(Algorithm::Spanish),
    Swedish "swedish" Some(Algorithm::Swedish),
    Turkish "turkish" Some(Algorithm::Turkish),
    Unstemmed "none" None,
}

impl Language {
    /// The language of a name in settings.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|language| language.name() == name)
    }

    /// The stemmer of the word `lower`, in lower case: by its script, or as the language's where it is Latin.
    pub(super) fn algorithm_for(self, lower: &str) -> Option<Algorithm> {
        // The rules know letters and apostrophes; anything else is compared as it is.
        if lower
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'\'')
        {
            return self.algorithm();
        }
        let all = |range: std::ops::RangeInclusive<char>| {
            lower.chars().all(|letter| range.contains(&letter))
        };
        match lower.chars().next()? {
            '\u{370}'..='\u{3FF}' if all('\u{370}'..='\u{3FF}') => Some(Algorithm::Greek),
            '\u{400}'..='\u{4FF}' if all('\u{400}'..='\u{4FF}') => Some(Algorithm::Russian),
            '\u{620}'..='\u{64A}' if all('\u{620}'..='\u{64A}') => Some(Algorithm::Arabic),
            '\u{B80}'..='\u{BFF}' if all('\u{B80}'..='\u{BFF}') => Some(Algorithm::Tamil),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_stemmers::Stemmer;

    use super::Language;

    #[test]
    fn names_are_their_own() {
        for &language in Language::ALL {
            assert_eq!(Language::from_name(language.name()), Some(language));
        }
        assert_eq!(Language::from_name("klingon"), None);
    }

    proptest! {
        #[test]
        fn no_word_breaks_a_stemmer(word in "[a-z']{1,20}|[α-ω]{1,20}|[а-яёіїє]{1,20}|[ء-ي]{1,20}|[அ-௹]{1,20}") {
            for &language in Language::ALL {
                if let Some(algorithm) = language.algorithm_for(&word) {
                    Stemmer::create(algorithm).stem(&word);
                }
            }
        }
    }
}
