# Everything sets itself up: on a fresh machine with Python ≥ 3.11, git and make, `make demo` and `make test` suffice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help demo test test-all check types bench results clean

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("gradientdice needs Python 3.11 or newer; run: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(INSTALLED) ## Evaluate a policy from the bundled log, show the answer beside the truth, write the report.
	$(BIN)/python -m gradientdice.experiments.demo

test: $(INSTALLED) check ## Lint, check the layers, and run the tests.
	$(BIN)/python -m pytest -n 2 -q

test-all: $(INSTALLED) check types ## Also type-check and run the slow statistical tests.
	$(BIN)/python -m pytest -q -m 'slow or not slow'

check: $(INSTALLED)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

types: $(INSTALLED) ## Type-check with pyright.
	$(BIN)/pyright

bench: $(INSTALLED) ## Measure speed, as ratios in one run.
	$(BIN)/python -m pip install --quiet 'torch==2.13.0'
	$(BIN)/python benchmarks/boyan_grid.py
	$(BIN)/python benchmarks/evaluate.py --large
	$(BIN)/python benchmarks/neural_step.py
	$(BIN)/python benchmarks/kernel_memory.py

results: $(INSTALLED) ## Write the result pages under docs/results anew.
	$(BIN)/gradientdice reproduce boyan --output results/boyan --page docs/results/boyan.md
	$(BIN)/gradientdice reproduce hard-example --output results/hard-example --page docs/results/hard_example.md
	$(BIN)/gradientdice reproduce coverage --output results/coverage --page docs/results/coverage.md
	$(BIN)/gradientdice reproduce verdicts --output results/verdicts --page docs/results/verdicts.md
	$(BIN)/gradientdice reproduce continuous --output results/continuous --page docs/results/continuous.md
	$(BIN)/gradientdice reproduce reacher --output results/reacher --page docs/results/reacher.md
	$(BIN)/gradientdice reproduce neural --output results/neural --page docs/results/neural.md
	$(BIN)/gradientdice reproduce shootout --output results/shootout --page docs/results/shootout.md

clean: ## Remove the virtual environment and generated results.
	rm -rf $(VENV) results demo-output
