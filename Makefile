# Everything sets itself up: on a fresh machine with Python ≥ 3.11, git and make, `make demo` and `make test` suffice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Where an environment says so, each of the tests' processes would compile all sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test tests test-all test-lowest test-adapters test-browser docs test-docs audit check-links package time-tutorial lock check types reliability bench bench-scale results clean

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# The studies are a package of their own, which the tests and the pages need beside the library.
$(INSTALLED): pyproject.toml studies/pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("gradientdice needs Python 3.11 or newer; run: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --editable ./studies --constraint requirements.lock
	@touch $@

demo: $(INSTALLED) ## Evaluate a policy from the bundled log, show the answer beside the truth, write the report.
	$(BIN)/python -m gradientdice.demo

test: $(INSTALLED) check ## Lint, check types and layers, and run the tests.
	$(MAKE) --no-print-directory --jobs 2 types tests  # pyright leaves one of two cores idle

# Two workers and the type checker keep two cores busy. Threads of BLAS that wait for a core do so in a loop, which
# takes time from the others: on busy cores 1,479 tests took 103 CPU seconds with two threads and 60 with one.
tests test-all test-lowest: export OPENBLAS_NUM_THREADS = 1
tests test-all test-lowest: export OMP_NUM_THREADS = 1

tests: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 -q

test-all: $(INSTALLED) check types ## Also run the slow statistical tests.
	$(BIN)/python -m pytest -n 2 -q -m 'not adapters'
	$(MAKE) audit package

# Kept apart from the environment of the tests, which `make lock` must find without them.
TOOLS := .venv-tools
$(TOOLS)/.installed:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet build hatchling pip-audit
	@touch $@

audit: $(TOOLS)/.installed ## Look the locked versions up among known vulnerabilities, where an index is reachable.
	@$(TOOLS)/bin/pip-audit --requirement requirements.lock --no-deps --disable-pip --format json --progress-spinner off \
	  2> $(TOOLS)/audit.log | $(TOOLS)/bin/python .ci/audit.py

check-links: ## Open every outside address of the package's metadata and pages; needs the internet, before a release.
	$(PYTHON) .ci/links.py

PACKAGE := .venv-package
package: $(TOOLS)/.installed ## Build the wheels and sdists, run the demo from the library's, and the studies' command beside it.
	rm -rf dist $(PACKAGE)
	set -e; for project in . studies; do \
	  $(TOOLS)/bin/python -m build --no-isolation --outdir dist $$project > $(TOOLS)/build.log || { cat $(TOOLS)/build.log; exit 1; }; \
	done
	@if $(PYTHON) -m zipfile --list dist/gradientdice-*.whl | grep studies; then \
	  echo "The library's wheel has these files of the studies."; exit 1; \
	fi; echo "The library's wheel has nothing of the studies."
	$(PYTHON) -m venv $(PACKAGE)
	set -e; for file in dist/gradientdice-*; do \
	  $(PACKAGE)/bin/python -m pip install --quiet --constraint requirements.lock $$file; \
	  (cd $(PACKAGE) && bin/python -m gradientdice.demo | grep verdict); \
	  $(PACKAGE)/bin/gradientdice reproduce --help 2>&1 | grep 'pip install gradientdice-studies'; \
	  $(PACKAGE)/bin/python -m pip uninstall --quiet --yes gradientdice; \
	done
	$(PACKAGE)/bin/python -m pip install --quiet --constraint requirements.lock dist/*.whl
	$(PACKAGE)/bin/gradientdice reproduce --help | grep hard-example

time-tutorial: $(TOOLS)/.installed ## Time the first tutorial for a newcomer: an empty environment, the wheel, every cell.
	rm -rf build/wheel
	$(TOOLS)/bin/python -m build --no-isolation --wheel --outdir build/wheel . > $(TOOLS)/build.log || { cat $(TOOLS)/build.log; exit 1; }
	$(PYTHON) benchmarks/first_tutorial.py build/wheel/*.whl

AXE := build/axe/package/axe.min.js
$(AXE):
	mkdir -p build/axe
	cd build/axe && npm pack --silent axe-core && tar xzf axe-core-*.tgz

test-browser: $(INSTALLED) $(AXE) ## Open the reports in Chromium: no errors, no requests, accessible (needs chromium and npm).
	AXE_CORE=$(AXE) $(BIN)/python -m pytest -q tests/report/test_browser.py

LOCK := .venv-lock
lock: ## Write the newest versions that go together to requirements.lock.
	rm -rf $(LOCK)
	$(PYTHON) -m venv $(LOCK)
	$(LOCK)/bin/python -m pip install --quiet --editable '.[dev,docs]' --editable ./studies
	$(LOCK)/bin/python -m pip freeze --exclude-editable > requirements.lock
	rm -rf $(LOCK)

LOWEST := .venv-lowest
test-lowest: ## Run the tests with the lowest versions that pyproject.toml allows.
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(PYTHON) -c "import tomllib; [print(d.replace('>=', '==')) for d in tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']]" > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --editable '.[dev]' --editable ./studies --constraint $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pytest -n 2 -q

# Other libraries have environments of their own: d3rlpy and RLlib ask for older versions of gymnasium. This torch is
# the build without CUDA; a plain `torch` pulls gigabytes. In each environment every test of its files must run.
TORCH := torch==2.13.0
TESTS := pytest>=8 hypothesis beartype
ADAPTER_TESTS = python -m pytest -q -rs -m adapters
test-adapters: ## Run the tests with Stable-Baselines3, Minari, d3rlpy, RLlib and others, each in its environment.
	set -e; for name in adapters d3rlpy rllib; do \
	  test -x .venv-$$name/bin/python || $(PYTHON) -m venv .venv-$$name; \
	  .venv-$$name/bin/python -m pip install --quiet --upgrade pip; \
	  .venv-$$name/bin/python -m pip install --quiet '$(TORCH)'; \
	done
	.venv-adapters/bin/python -m pip install --quiet --editable '.[sb3,minari,hdf5,datasets,torch,sklearn,flax]' polars jsonschema $(foreach t,$(TESTS),'$(t)')
	.venv-d3rlpy/bin/python -m pip install --quiet --editable '.[d3rlpy]' $(foreach t,$(TESTS),'$(t)')
	.venv-rllib/bin/python -m pip install --quiet --editable '.[rllib]' 'ray[rllib]' msgpack-numpy $(foreach t,$(TESTS),'$(t)')
	.venv-adapters/bin/$(ADAPTER_TESTS) $(filter-out tests/adapters/test_d3rlpy% tests/adapters/test_rllib%,$(wildcard tests/adapters/test_*.py))
	.venv-d3rlpy/bin/$(ADAPTER_TESTS) $(wildcard tests/adapters/test_d3rlpy*.py)
	.venv-rllib/bin/$(ADAPTER_TESTS) $(wildcard tests/adapters/test_rllib*.py)

DOCS := $(VENV)/.docs-installed
$(DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[docs]' --constraint requirements.lock
	@touch $@

docs: $(DOCS) ## Build the documentation site into build/docs: tutorials are run, and a warning is an error.
	rm -rf build/docs docs/reference/generated
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html docs build/docs

test-docs: docs ## Open every page of the site in Chromium, follow every link, and take pictures into build/pictures.
	$(BIN)/python -m pytest -q docs/tests

# Lines of code that a page of the site shows whole; tests/test_docs.py holds all blocks to it.
PAGE_WIDTH := 88
check: $(INSTALLED)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff format --check --quiet --line-length $(PAGE_WIDTH) $$(git ls-files '*.md')
	$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

types: $(INSTALLED) ## Type-check the library, the studies and the tests with pyright.
	$(BIN)/pyright

reliability: $(INSTALLED) ## Try bad input, faults and kills by the thousand, and write docs/reliability.md.
	$(BIN)/python benchmarks/bad_input.py

bench: $(INSTALLED) ## Measure speed, as ratios in one run.
	$(BIN)/python -m pip install --quiet 'torch==2.13.0'
	$(BIN)/python benchmarks/boyan_grid.py
	$(BIN)/python benchmarks/evaluate.py --large
	$(BIN)/python benchmarks/door.py
	$(BIN)/python benchmarks/ranking.py
	$(BIN)/python benchmarks/neural_step.py
	$(BIN)/python benchmarks/kernel_memory.py

bench-scale: $(INSTALLED) ## Measure logs beyond memory and write docs/results/scale.md; takes 5 GB in scale-logs, and 25 minutes.
	$(BIN)/python benchmarks/scale.py

results: $(INSTALLED) ## Run all studies and write the pages under docs/results.
	set -e; for name in $$($(BIN)/python -c 'from gradientdice_studies.registry import EXPERIMENTS; print(*EXPERIMENTS)'); do \
	  $(BIN)/gradientdice reproduce $$name --page docs/results/$$(echo $$name | tr - _).md; \
	done

clean: ## Remove the virtual environment and generated results.
	rm -rf $(VENV) $(LOWEST) $(PACKAGE) $(TOOLS) .venv-adapters .venv-d3rlpy .venv-rllib build dist docs/reference/generated results demo-output scale-logs
