# Everything runs in a virtual environment of the project's own; `make setup` makes it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format report-page browser lock wheelhouse dist docs bench bench-peers conformance serve farm faults fuzz simulate clean

help: ## what the targets do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

setup: $(STAMP) ## a virtual environment with both distributions and the test tools

$(STAMP): pyproject.toml client/pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 11) or sys.exit("Python 3.11 or newer is needed, and \
	$(PYTHON) is %d.%d: run make setup PYTHON=python3.11, or another that you have." % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e './client[cpu,cuda,cli,onnx,jax,tinygrad]' -e '.[dev]'
	touch $@

demo: $(STAMP) ## compile SqueezeNet, run it, and compare with the output shipped beside it
	$(BIN)/python -m tensorkiln.demo

# Each of many processes would compile every module for itself.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(STAMP) ## every test
	$(BIN)/python -m pytest -W error -n auto --dist loadgroup --durations 40

check: $(STAMP) ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(STAMP) ## let ruff rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

report-page: ## the page of `kiln report`, out of its source: needs npm
	cd client/report && npm ci --silent && npm run --silent build
	cp client/report/node_modules/.page/index.html client/tensorkiln/report/page.html

browser: $(STAMP) ## the tests of all pages in Chromium, which has to be installed
	KILN_REQUIRE_CHROMIUM=1 $(BIN)/python -m pytest -W error tests/report tests/pages

# The oldest glibc that the base image may have. `make lock UPGRADE=--upgrade` takes newer versions of everything.
LOCK = $(BIN)/uv pip compile --quiet --generate-hashes --no-build --no-annotate --custom-compile-command 'make lock' \
    --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
    --no-emit-package tensorkiln --no-emit-package tensorkiln-server $(UPGRADE)

lock: $(STAMP) ## the versions and hashes of all that the images are made of
	$(LOCK) docker/lock/images.in --output-file docker/lock/images.txt
	$(LOCK) docker/lock/tools.in --output-file docker/lock/tools.txt

wheelhouse: $(STAMP) ## all wheels that the images are made of, for when the index has dropped some
	for lock in images tools; do $(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps \
	    --only-binary=:all: --require-hashes --find-links=docker/wheelhouse \
	    -r docker/lock/$$lock.txt -d docker/wheelhouse || exit 1; done

dist: $(STAMP) ## wheels and sdists of both distributions, into dist/; the same bytes from the same sources
	for folder in client .; do $(BIN)/python -m build --no-isolation --outdir dist $$folder || exit 1; done

docs: $(STAMP) ## the manual as a site with search, into build/site; links that lead nowhere are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

bench: $(STAMP) ## run and compile times beside NumPy's, on one core, and three rows beside the installed peers
	OPENBLAS_NUM_THREADS=1 taskset -c 0 $(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.peers --installed --rows E2,S1,M1_512 --cores 1 --memory default --budget 0.2

bench-peers: $(STAMP) ## all that, networks and latency beside JAX, torch, IREE, ONNX Runtime and numba, into docs/
	$(BIN)/python -m tests.bench.peers --write

conformance: $(STAMP) ## the node cases of the onnx package: how many pass, and what the others say
	$(BIN)/python -m tests.frontends.onnx.conformance --details

serve: $(STAMP) ## the service on http://127.0.0.1:8080
	$(BIN)/kiln serve

farm: $(STAMP) ## two services and four workers on this machine, until Ctrl-C
	$(BIN)/python -m tests.farm

faults: $(STAMP) ## what the service and a farm survive, at full size, with the figures
	KILN_FAULTS=full $(BIN)/python -m pytest -W error -s -m faults

SECONDS ?= 600
SEED ?= 1
fuzz: $(STAMP) ## composed graphs for SECONDS=600 from SEED=1, against the reference and without fusion
	$(BIN)/python -m tests.fuzz run --seconds $(SECONDS) --seed $(SEED)

HISTORIES ?= 100000
simulate: $(STAMP) ## HISTORIES=100000 simulated histories of a farm from SEED=1, each promise held against each
	$(BIN)/python -m tests.simulation --histories $(HISTORIES) --seed $(SEED)

clean: ## remove the virtual environments and caches
	rm -rf $(VENV) .peers .pytest_cache .ruff_cache .hypothesis
