//! Banks whose graphs are of usearch and whose inverted indexes are of tantivy, with files.

use std::path::Path;

use astrocyte_core::checkpoint::Label;
use astrocyte_core::{
    Bank, Core, CoreOptions, DenseMethod, Hit, LexicalMethod, PlannerOptions, RecallRequest,
    RecallResponse, Row,
};

use super::{Random, clustered};

pub const DIMENSIONS: usize = 64;
pub const BUILD_ROWS: u32 = 300;

/// A core of both libraries, with files in `scratch`, that builds when a test says so.
pub fn core(scratch: Option<&Path>, build_rows: u32) -> Core {
    methods(
        scratch,
        build_rows,
        DenseMethod::Usearch,
        LexicalMethod::Tantivy,
    )
}

pub fn methods(
    scratch: Option<&Path>,
    graph_rows: u32,
    dense: DenseMethod,
    lexical: LexicalMethod,
) -> Core {
    let options = CoreOptions {
        graph_rows,
        build_share: 1.0,
        dense,
        lexical,
        planner: PlannerOptions {
            scan_rows: 1,
            sampling: 0.0,
            ..PlannerOptions::default()
        },
        ..CoreOptions::default()
    };
    Core::with_options(scratch, options).expect("the options are in their ranges")
}

pub fn rows(random: &mut Random, keys: std::ops::Range<u64>) -> Vec<Row> {
    let vectors = clustered(random, DIMENSIONS, (keys.end - keys.start) as usize);
    let row = |(key, vector)| {
        let mut row = super::row(key, random.text(8));
        row.vector = Some(vector);
        row
    };
    keys.zip(vectors).map(row).collect()
}

/// A bank of so many rows in segments, and what it is made of.
pub fn filled(core: &Core, random: &mut Random, count: u64) -> (Bank, Vec<Row>) {
    let rows = rows(random, 1..count + 1);
    let bank = core.bank(DIMENSIONS).expect("in range");
    apply(&bank, 1, &rows, &[]);
    built(&bank);
    (bank, rows)
}

pub fn apply(bank: &Bank, position: u64, rows: &[Row], removed: &[u64]) {
    bank.apply(position, rows, &[], removed)
        .expect("the rows are right");
}

pub fn built(bank: &Bank) {
    bank.build_graphs().expect("there is memory");
}

pub fn write(bank: &Bank, directory: &Path) {
    bank.checkpoint(directory, &Label::default(), true)
        .expect("there is room");
}

pub fn load(core: &Core, directory: &Path) -> Bank {
    core.load(directory, &Label::default(), DIMENSIONS)
        .expect("the bank is whole")
}

/// Rows of graphs and of inverted indexes that the checkpoint does not have.
pub fn unsaved(bank: &Bank) -> (u64, u64) {
    (bank.unsaved_graph_rows(), bank.unsaved_word_rows())
}

pub fn ask(bank: &Bank, request: &RecallRequest) -> RecallResponse {
    bank.recall(request).expect("the request is right")
}

pub fn question(row: &Row) -> RecallRequest {
    RecallRequest {
        text: Some(row.text.clone()),
        vector: row.vector.clone(),
        ..RecallRequest::default()
    }
}

/// The hits by both libraries.
pub fn hits(bank: &Bank, row: &Row) -> Vec<Hit> {
    let response = ask(bank, &question(row));
    assert!(
        response.plan.starts_with("graph of usearch: ")
            && response.plan.contains("; postings of tantivy: "),
        "{}",
        response.plan
    );
    response.hits
}
