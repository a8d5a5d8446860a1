//! Conversations: labels that tell turns apart, and what a recall does with them.

/// Metadata key under which a row has its speaker.
pub const SPEAKER_KEY: &str = "speaker";
/// In front of a speaker's whole name, in lower case, as a value of [`SPEAKER_KEY`].
pub const WHOLE_NAME: char = '@';
/// In front of the first word of a name of several words, in lower case, as a value of [`SPEAKER_KEY`].
pub const FIRST_NAME: char = '~';
/// Metadata key under which a row has the kinds of its turn.
pub const TURN_KEY: &str = "turn";
/// Value of [`TURN_KEY`]: a short turn of a conversation that ends with a question.
pub const QUESTION: &str = "@question";
/// Value of [`TURN_KEY`]: a turn that is about the one to whom it is said, and not about its speaker.
pub const ADDRESS: &str = "@address";

/// Additions to the scores of the first candidates, by who said them, what kind of turn they are, and when they
/// happened. Amounts are in deviations of an arm's scores; 0 adds nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnBoosts {
    /// Words of the query that may be the name of a speaker, in lower case.
    pub names: Vec<String>,
    /// Amount for what a speaker said, if the names are of exactly one known speaker.
    pub speaker: f64,
    /// Amount that a question loses to which another speaker's turn is the next; that turn moves half-way up to it.
    pub question: f64,
    /// Amount for a memory inside a window of [`date_windows`](Self::date_windows).
    pub date: f64,
    /// Windows (first, last) of event time.
    pub date_windows: Vec<(i64, i64)>,
    /// Distance to the next hit of a hit that feedback kept at the head.
    pub standing: f64,
    /// The fused score of one deviation, above 0.
    pub unit: f64,
}

impl Default for TurnBoosts {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            speaker: 0.0,
            question: 0.0,
            date: 0.0,
            date_windows: Vec::new(),
            standing: 0.0,
            unit: 1.0,
        }
    }
}
