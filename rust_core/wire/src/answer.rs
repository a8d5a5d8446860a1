//! `astrocyte.v1.RecallResponse` without its hits, and `RecallTrace`.

/// Numbers of the fields; a Python test holds what is written against protobuf's own bytes.
pub mod field {
    #![expect(missing_docs, reason = "the protocol documents its fields")]
    pub const TOTAL_AVAILABLE: u32 = 2;
    pub const TRUNCATED: u32 = 3;
    pub const TRACE: u32 = 4;
    pub const AUTHORITY_CONTEXT: u32 = 5;
    pub const WARNINGS: u32 = 6;
    pub const CONFIDENCE: u32 = 7;
    pub const ABSTAIN: u32 = 8;

    /// Of `BatchRecallResponse`.
    pub const RESULTS: u32 = 1;

    /// Of `RecallTrace`.
    pub mod trace {
        pub const STRATEGIES_USED: u32 = 1;
        pub const TOTAL_CANDIDATES: u32 = 2;
        pub const FUSION_METHOD: u32 = 3;
        pub const LATENCY_MS: u32 = 4;
        pub const STRATEGY_TIMINGS_MS: u32 = 5;
        pub const STRATEGY_CANDIDATE_COUNTS: u32 = 6;
        pub const TIER_USED: u32 = 7;
        pub const LAYER_DISTRIBUTION: u32 = 8;
        pub const CACHE_HIT: u32 = 9;
        pub const WIKI_TIER_USED: u32 = 10;
        pub const STAGE_TIMINGS_MS: u32 = 11;
        pub const PLAN: u32 = 12;
        pub const TIME_WINDOWS: u32 = 13;
        pub const POSITION: u32 = 14;
        pub const DEGRADED: u32 = 15;
        pub const INTENT: u32 = 16;
        pub const INTENT_CONFIDENCE: u32 = 17;
        pub const TIER_REASON: u32 = 21;
    }
}
