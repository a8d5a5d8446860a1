#!/usr/bin/env bash
# Runs tests of the Rust core with every access to memory watched. `address`: what is read or written out of bounds or
# after it was freed, and what leaks. `threads`: what two threads touch without an order between them. Faults on purpose
# come first: who misses them would find nothing else.
#
# `address` needs what every Linux toolchain of rustup brings. `threads` compiles the standard library too, as without it
# the orders that it makes are not seen. The options are unstable, hence the switch that lets a stable compiler take them.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-}
case $kind in
address)
    name=Address
    build=()
    tests=(--workspace --tests)
    faults=(use_after_free:heap-use-after-free out_of_bounds:heap-buffer-overflow)
    # Three laws of the large tier compare many thousand answers, which takes minutes each.
    options=(
        --skip the_large_tier_finds_what_the_flat_one_finds
        --skip the_normalisation_is_near_that_of_the_flat_tier
        --skip a_text_scores_the_same_in_either_tier
    )
    ;;
threads)
    name=Thread
    # Without usearch: the order that C++ code makes between threads is not seen.
    build=(-Zbuild-std --package astrocyte-core --no-default-features --features thread-sanitizer)
    # Where threads meet.
    tests=(--test stress --test bank_laws --test checkpoint_laws --test graph_checkpoint_laws --test large_laws --test sanitizer_control)
    faults=(data_race:"data race")
    options=(
        answers_are_those_of_one_thing_after_the_other
        many_recalls_equal_single_ones
        commits_while_it_is_written_are_made_up_for
        one_that_is_not_back_yet_is_in_the_next_checkpoint_all_the_same
        what_happened_after_the_checkpoint_is_made_up_for
        the_background_folds_by_itself
        recalls_go_on_while_rows_come_and_go_and_graphs_are_built
    )
    ;;
*)
    echo "usage: $0 address|threads" >&2
    exit 2
    ;;
esac

target=$(rustc -vV | sed -n 's/^host: //p')
[[ $target == *-linux-gnu ]] || { echo "This is set up for Linux with glibc, not for $target." >&2; exit 1; }
if [[ $kind == threads && ! -d $(rustc --print sysroot)/lib/rustlib/src/rust/library ]]; then
    echo "The standard library's source is missing: rustup component add rust-src" >&2
    exit 1
fi

# Its own folder: what is built here fits no other build. With --target, build scripts stay as they are.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitize-$kind"
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=${name,,}" CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=true
# A stack frame is watched after its return, too, which is off unless asked for.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1}"
# More than the two of `make test`: rare orders of threads are what is looked for.
export STRESS_ROUNDS="${STRESS_ROUNDS:-8}"

run() {
    cargo test --locked "${build[@]}" --target "$target" "$@"
}

run --quiet "${tests[@]}" --no-run
for fault in "${faults[@]}"; do
    report="${name}Sanitizer: ${fault#*:}"
    said=$(run --quiet --package astrocyte-core --test sanitizer_control -- --ignored --exact "${fault%%:*}" 2>&1) && status=0 || status=$?
    if ((status == 0)) || ! grep -q "$report" <<<"$said"; then
        printf '%s\nThe fault on purpose %s was not reported as "%s".\n' "$said" "${fault%%:*}" "$report" >&2
        exit 1
    fi
    echo "found the fault on purpose: ${fault%%:*}"
done
started=$SECONDS
run "${tests[@]}" -- "${options[@]}"
echo "nothing was reported in $((SECONDS - started)) seconds"
