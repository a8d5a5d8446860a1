//! Abbreviations after which a sentence goes on, although a capital or a number follows.

/// Abbreviations that stand before a name or a number, without their stop, in lower case and ascending order.
///
/// Those that as often end a sentence ("etc.", "Inc.", "usw.") are left out: before a lower-case letter no sentence ends
/// anyway. Single letters and letters with stops between ("U.S.", "z.B.") need no entry.
const ABBREVIATIONS: &[&str] = &[
    // Ascending by bytes, because membership is a binary search.
    "al", "approx", "assoc", "avv", "bgm", "bijv", "blvd", "brig", "bzgl", "bzw", "ca", "capt",
    "cf", "cmdr", "col", "cpl", "dept", "dhr", "dipl", "dott", "dr", "dra", "dña", "evtl", "geb",
    "gen", "ggf", "gov", "hon", "hr", "hrsg", "incl", "ing", "inkl", "lt", "maj", "mevr", "mgr",
    "mlle", "mme", "mr", "mrs", "ms", "msgr", "mt", "núm", "prof", "pvt", "rev", "sgt", "sigg",
    "sog", "sr", "sra", "srta", "st", "ste", "uds", "vgl", "vs", "zzgl", "д-р", "им", "мр", "напр",
    "проф", "ред", "св", "см", "ул",
];

/// Abbreviations only before a number, in ascending order: "no. 5" against "no. And".
const BEFORE_NUMBERS: &[&str] = &[
    "abb", "abs", "abt", "apr", "art", "aug", "av", "bd", "cap", "ch", "dec", "ed", "feb", "fig",
    "figs", "fri", "g", "jan", "jul", "jun", "kap", "mar", "max", "min", "mio", "mon", "mrd", "n",
    "no", "nos", "nov", "nr", "num", "nº", "oct", "okt", "op", "p", "pag", "pp", "pág", "s", "sat",
    "sep", "sept", "sun", "tel", "thu", "tue", "vol", "vols", "wed", "г", "гл", "п", "пр", "рис",
    "с", "стр", "табл", "ч", "№",
];

/// German words after which an ordinal number ("3. Mai") is no end; elsewhere such words are in lower case.
const AFTER_ORDINALS: &[&str] = &[
    "April",
    "August",
    "Auflage",
    "Dezember",
    "Etage",
    "Februar",
    "Geburtstag",
    "Jahrhundert",
    "Jahrhunderts",
    "Jan",
    "Januar",
    "Jänner",
    "Juli",
    "Juni",
    "Kapitel",
    "Klasse",
    "Liga",
    "Mai",
    "März",
    "November",
    "Oktober",
    "Platz",
    "Runde",
    "September",
    "Stock",
    "Weltkrieg",
];

/// Words that go on after a time of day ("3 p.m. Friday", "9 a.m. Eastern"), in ascending order.
const AFTER_TIMES: &[&str] = &[
    "April",
    "August",
    "Central",
    "December",
    "Eastern",
    "February",
    "Friday",
    "January",
    "July",
    "June",
    "March",
    "May",
    "Monday",
    "Mountain",
    "November",
    "October",
    "Pacific",
    "Saturday",
    "September",
    "Sunday",
    "Thursday",
    "Tuesday",
    "Wednesday",
];

/// Returns true if the sentence goes on after `word` and its stop. `next` is the following text without leading space.
pub(super) fn goes_on_after(word: &str, next: &str) -> bool {
    let lower = word.to_lowercase();
    let before_number = next.starts_with(char::is_numeric);
    ABBREVIATIONS.binary_search(&lower.as_str()).is_ok()
        || (before_number && BEFORE_NUMBERS.binary_search(&lower.as_str()).is_ok())
}

/// Returns true if `next` begins with a word that an ordinal number precedes.
pub(super) fn follows_ordinal(next: &str) -> bool {
    let end = next
        .find(|character: char| !character.is_alphabetic())
        .unwrap_or(next.len());
    AFTER_ORDINALS.contains(&&next[..end])
}

/// Returns true if `next` begins with what goes on after a time of day: a number, a day, a month or a time zone.
pub(super) fn follows_time(next: &str) -> bool {
    let end = next
        .find(|character: char| !character.is_alphabetic())
        .unwrap_or(next.len());
    let word = &next[..end];
    // "EST", "CET", "UTC"; "IT" is no zone.
    let is_zone = matches!(word.len(), 3 | 4)
        && word.bytes().all(|byte| byte.is_ascii_uppercase())
        && word.ends_with(['T', 'C']);
    next.starts_with(char::is_numeric)
        || next.starts_with('(')
        || is_zone
        || AFTER_TIMES.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{ABBREVIATIONS, AFTER_TIMES, BEFORE_NUMBERS};

    #[test]
    fn abbreviations_ascend() {
        assert!(ABBREVIATIONS.is_sorted() && BEFORE_NUMBERS.is_sorted() && AFTER_TIMES.is_sorted());
    }
}
