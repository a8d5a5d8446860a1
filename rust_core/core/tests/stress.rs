//! Everything at once: readers, a writer, folds, checkpoints, and a bank that goes and comes back.
//!
//! Each answer says which position it saw, and is what a bank says to which the same commits were applied one by one:
//! to the byte where rows were scanned, and by contents where graphs were walked. `STRESS_ROUNDS` says how often.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use astrocyte_core::checkpoint::Label;
use astrocyte_core::{Bank, Core, CoreOptions, PlannerOptions, RecallRequest, RecallResponse};
use common::commits::{Commit, DIMENSIONS, commits, random_request};
use common::{Random, id};
use parking_lot::{Mutex, RwLock};

const COMMITS: usize = 60;
/// Rows of a commit, at most: on the way dead rows are dropped again and again.
const ROWS: u64 = 12;
const REQUESTS: usize = 12;
const READERS: u64 = 3;
/// Answers of a reader, at least.
const ANSWERS: usize = 40;

/// The expected answer of every request after every commit.
struct Oracle {
    commits: Vec<Commit>,
    requests: Vec<RecallRequest>,
    /// By position, then request.
    answers: Vec<Vec<RecallResponse>>,
}

impl Oracle {
    fn new(seed: u64) -> Self {
        let commits = commits(seed, COMMITS, ROWS);
        let mut random = Random(seed ^ 1);
        let requests: Vec<_> = (0..REQUESTS).map(|_| random_request(&mut random)).collect();
        let bank = core(0)
            .bank(DIMENSIONS)
            .expect("the dimensions are in range");
        let ask = |bank: &Bank| {
            requests
                .iter()
                .map(|request| settled(bank, request))
                .collect()
        };
        let mut answers = vec![ask(&bank)];
        for (position, commit) in (1..).zip(&commits) {
            apply(&bank, position, commit);
            answers.push(ask(&bank));
        }
        Self {
            commits,
            requests,
            answers,
        }
    }

    /// Holds an answer against the one of its position: the whole of it where no graph can have had a part in it.
    fn check(&self, number: usize, answer: &RecallResponse, graphs: bool) {
        let expected = &self.answers[answer.position as usize][number];
        let at = format!(
            "position {}, request {number}, {}",
            answer.position, answer.plan
        );
        if !graphs || answer.plan.starts_with("scan") {
            assert_eq!(answer, expected, "{at}");
            return;
        }
        assert_eq!(answer.allowed, expected.allowed, "{at}");
        // A walk with room for all may still leave one out that no other leads to.
        let missing = contents(expected).difference(&contents(answer)).count();
        assert!(missing <= 1, "{missing} are missing: {at}");
    }
}

fn contents(answer: &RecallResponse) -> BTreeSet<[u8; 16]> {
    answer.hits.iter().map(|hit| hit.content_hash).collect()
}

/// A core that folds tails of `graph_rows`, walks whatever is folded, and compares every walk with a scan.
fn core(graph_rows: u32) -> Core {
    let options = CoreOptions {
        graph_rows,
        build_share: 1.0,
        planner: PlannerOptions {
            scan_rows: 1,
            sampling: 1.0,
            recall_floor: 0.0,
            ..PlannerOptions::default()
        },
        ..CoreOptions::default()
    };
    Core::with_options(Some(&std::env::temp_dir()), options)
        .expect("the options are in their ranges")
}

fn apply(bank: &Bank, position: u64, commit: &Commit) {
    bank.apply(position, &commit.upserts, &commit.ended, &commit.removed)
        .expect("the rows are valid");
}

/// The answer without its timings.
fn settled(bank: &Bank, request: &RecallRequest) -> RecallResponse {
    let mut response = bank.recall(request).expect("the request is valid");
    response.arm_micros.clear();
    response.feedback_micros = 0.0;
    response
}

fn label() -> Label {
    let word = |word: &str| word.to_owned();
    Label {
        bank: word("bank"),
        model: word("model"),
        recipe: word("recipe"),
        note: String::new(),
    }
}

/// A bank in use.
struct Life<'a> {
    oracle: &'a Oracle,
    core: Core,
    folder: PathBuf,
    bank: RwLock<Bank>,
    /// Held by who applies or puts another bank in the place of the present one; commits that the store has.
    stored: Mutex<usize>,
    checkpoint: Mutex<Option<Arc<Directory>>>,
    written: AtomicUsize,
    over: AtomicBool,
    graphs: bool,
}

/// A checkpoint's directory, which goes when nobody reads it.
struct Directory(PathBuf);

impl Directory {
    fn make(path: PathBuf) -> Self {
        std::fs::create_dir_all(&path).expect("a new directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Life<'_> {
    fn bank(&self) -> Bank {
        self.bank.read().clone()
    }

    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    fn write(&self) {
        for (number, commit) in self.oracle.commits.iter().enumerate() {
            let mut stored = self.stored.lock();
            *stored = number + 1;
            apply(&self.bank(), number as u64 + 1, commit);
            drop(stored);
            std::thread::yield_now();
        }
    }

    fn read(&self, seed: u64) {
        let mut random = Random(seed);
        let (mut asked, mut bank, mut newest) = (0, self.bank(), 0);
        while asked < ANSWERS || self.goes_on() {
            let number = random.below(REQUESTS as u64) as usize;
            let answer = settled(&bank, &self.oracle.requests[number]);
            self.oracle.check(number, &answer, self.graphs);
            assert!(
                answer.position >= newest,
                "the bank went back to {}",
                answer.position
            );
            newest = answer.position;
            match random.below(8) {
                // What comes in the place of a bank is no older than any of its answers.
                0 => bank = self.bank(),
                1 => self.look(&bank, &mut random),
                _ => {}
            }
            asked += 1;
        }
    }

    /// The other reads.
    fn look(&self, bank: &Bank, random: &mut Random) {
        let near = bank.near_duplicates(&[random.vector(DIMENSIONS)], 0.5);
        assert!(near.expect("the vector is valid")[0].len() <= 4);
        let ids: Vec<_> = (0..20).map(id).collect();
        assert_eq!(bank.contains_hashes(&ids).len(), ids.len());
        let keys = bank.keys_of(&ids);
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        let stats = bank.stats();
        assert!(stats.memories <= stats.versions && stats.versions <= stats.rows);
        let request = &self.oracle.requests[random.below(REQUESTS as u64) as usize];
        let explained = bank.explain(request, &ids).expect("the request is valid");
        assert_eq!(explained.fates.len(), ids.len());
    }

    fn fold(&self) {
        while self.goes_on() {
            self.bank().build_graphs().expect("there is memory");
            std::thread::yield_now();
        }
    }

    fn save(&self) {
        while self.goes_on() {
            let number = self.written.fetch_add(1, Ordering::Relaxed);
            let directory = Directory::make(self.folder.join(number.to_string()));
            // Rows that get new numbers again and again leave none.
            if self.bank().checkpoint(&directory.0, &label(), true).is_ok() {
                *self.checkpoint.lock() = Some(Arc::new(directory));
            }
        }
    }

    /// Lets go of the bank and reads it again, from a checkpoint where there is one.
    fn evict(&self) {
        while self.goes_on() {
            let checkpoint = self.checkpoint.lock().clone();
            let loaded = match &checkpoint {
                Some(directory) => self.core.load(&directory.0, &label(), DIMENSIONS),
                None => self.core.bank(DIMENSIONS),
            };
            let bank = loaded.expect("what was written");
            let stored = self.stored.lock();
            for (position, commit) in (1..).zip(&self.oracle.commits[..*stored]) {
                apply(&bank, position, commit);
            }
            *self.bank.write() = bank;
            drop(stored);
            std::thread::yield_now();
        }
    }
}

fn live(seed: u64, graph_rows: u32, folder: &Path) {
    let oracle = Oracle::new(seed);
    let core = core(graph_rows);
    let bank = core.bank(DIMENSIONS).expect("the dimensions are in range");
    let life = Life {
        oracle: &oracle,
        core,
        folder: folder.join(format!("{seed}-{graph_rows}")),
        bank: RwLock::new(bank),
        stored: Mutex::new(0),
        checkpoint: Mutex::new(None),
        written: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        graphs: graph_rows > 0,
    };
    std::thread::scope(|scope| {
        let life = &life;
        let readers: Vec<_> = (0..READERS)
            .map(|reader| scope.spawn(move || life.read(seed ^ reader << 8)))
            .collect();
        let others =
            [Life::fold, Life::save, Life::evict].map(|other| scope.spawn(move || other(life)));
        life.write();
        life.over.store(true, Ordering::Relaxed);
        for thread in readers.into_iter().chain(others) {
            thread.join().expect("no panic");
        }
    });
    for (number, request) in oracle.requests.iter().enumerate() {
        let answer = settled(&life.bank(), request);
        assert_eq!(answer.position, COMMITS as u64);
        oracle.check(number, &answer, life.graphs);
    }
}

#[test]
fn answers_are_those_of_one_thing_after_the_other() {
    let rounds = std::env::var("STRESS_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok());
    let folder =
        Directory::make(std::env::temp_dir().join(format!("stress-{}", std::process::id())));
    for seed in 0..rounds.unwrap_or(2) {
        // Without graphs, and with many small ones.
        for graph_rows in [0, 20] {
            live(seed, graph_rows, &folder.0);
        }
    }
}
