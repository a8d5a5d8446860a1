//! Failpoints: named places at which the process can be killed, to test that a crash there loses nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// `NAME` dies at the first pass of that point, `NAME:3` at the third. Read once; without it no point does anything.
const VARIABLE: &str = "ASTROCYTE_FAILPOINT";

/// The point at which to die, and how many passes from now.
#[derive(Debug)]
struct Armed {
    name: String,
    left: AtomicU32,
}

/// Dies here, at once and without any cleaning up, if the environment says so.
pub fn reach(name: &str) {
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    let armed = ARMED.get_or_init(|| std::env::var(VARIABLE).ok().map(|value| parse(&value)));
    if let Some(armed) = armed
        && armed.name == name
        && armed.left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        std::process::abort();
    }
}

fn parse(value: &str) -> Armed {
    let (name, passes) = value.rsplit_once(':').unwrap_or((value, "1"));
    Armed {
        name: name.to_owned(),
        left: AtomicU32::new(passes.parse().unwrap_or(1).max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_a_name_and_perhaps_a_number() {
        let armed = parse("checkpoint.file:3");
        assert_eq!(armed.name, "checkpoint.file");
        assert_eq!(armed.left.load(Ordering::Relaxed), 3);
        assert_eq!(parse("apply.before").left.load(Ordering::Relaxed), 1);
        assert_eq!(parse("apply.before:x").left.load(Ordering::Relaxed), 1);
    }
}
