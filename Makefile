# make demo    the main job, on a fresh machine, with all set-up        make test    the tests
# make check   format, lint, types, import direction, docs in step      make bench   the benchmarks
# make slow    the tests of several processes: ranks, kills, services   make docs    docs/cli.md anew
# make parity  the large tests (base sizes, real data, real TensorFlow)
# make wheel   build the package, try it in an empty environment        make install only the set-up
# make fuzz    mutants of all that is read, kills where files are written
# make browser the playground in a real browser                         make contract  the service against its openapi.json
# make cluster object stores, Ray and several hosts (network namespaces; needs root for these)
# make commands  the commands of README.md and docs/, as they are written
# make constraints   newest versions of all dependencies into constraints.txt

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CLUSTER := .venv-cluster

.PHONY: commands slow browser cluster contract demo test check bench parity fuzz docs wheel constraints install clean

demo: install
	$(BIN)/litebert demo

test: install
	$(BIN)/python -m pytest -m "not slow and not extra and not browser and not cluster" \
	    -n 2 --dist worksteal

slow: install
	$(BIN)/python -m pytest -m "slow and not extra" -n 2 --dist worksteal

# Where chromium is missing and Debian's can be installed, it is; else the tests say that they skip.
browser: install
	command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get -qq update; apt-get -qq install -y chromium; } >/dev/null 2>&1; } || true
	test -d .browser/node_modules/axe-core || { command -v npm >/dev/null && \
	    npm install --silent --ignore-scripts --prefix .browser axe-core@4; } || true
	$(BIN)/python -m pytest -m browser

# schemathesis brings many packages of its own, so it has an environment of its own.
contract: install
	test -x .contract/bin/schemathesis || { $(PYTHON) -m venv .contract && \
	    .contract/bin/python -m pip install --quiet 'schemathesis>=4.32,<5'; }
	$(BIN)/python -m tests.serving.contract --schemathesis .contract/bin/schemathesis
	$(BIN)/python -m tests.serving.raw_http

# Ray, s3fs and moto beside what .venv has: they hold back a package that others have newer.
cluster: install
	test -x $(CLUSTER)/bin/ray || { $(BIN)/python -m venv $(CLUSTER) && \
	    $(BIN)/python -c 'import sysconfig; \
	        print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	        > $$(echo $(CLUSTER)/lib/python*/site-packages)/beside.pth && \
	    $(CLUSTER)/bin/python -m pip install --quiet -c constraints-cluster.txt \
	        ray s3fs gcsfs 'moto[server]'; }
	command -v ip >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get -qq update; apt-get -qq install -y iproute2; } >/dev/null 2>&1; } || true
	$(CLUSTER)/bin/python -m pytest -m cluster
	$(CLUSTER)/bin/python -m tests.remote
	$(CLUSTER)/bin/python -m tests.cluster

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python docs/write_reference.py --check

bench: install
	$(BIN)/python benchmarks/train_step.py
	$(BIN)/python benchmarks/plan_truth.py
	$(BIN)/python benchmarks/xxlarge_step.py
	$(BIN)/python benchmarks/prepare.py
	$(BIN)/python benchmarks/loader.py
	$(BIN)/python benchmarks/order.py
	$(BIN)/python benchmarks/onnx_export.py
	$(BIN)/python benchmarks/inference.py
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/kill_prepare.py
	$(BIN)/python benchmarks/pretrain.py
	$(BIN)/python benchmarks/kill.py
	$(BIN)/python benchmarks/time_to_quality.py

parity: install
	$(BIN)/python -m pytest -m extra

fuzz: install
	$(BIN)/python -m tests.fuzz
	$(BIN)/python -m tests.faults

docs: install
	$(BIN)/python docs/write_reference.py

commands: install
	$(BIN)/python docs/run_commands.py

wheel: install
	$(BIN)/python release/check_wheel.py

constraints:
	$(PYTHON) release/refresh_constraints.py

install: $(VENV)/installed

# constraints.txt pins everything but torch, the build backend included; without a GPU,
# constraints-cpu.txt pins the CPU build of torch; with one, pip chooses it.
$(VENV)/installed: pyproject.toml constraints.txt constraints-cpu.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "litebert needs Python 3.11 or newer: make PYTHON=python3.12"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt pip
	if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; \
	    then torch=; else torch='-c constraints-cpu.txt'; fi; \
	$(BIN)/python -m pip install --quiet -c constraints.txt $$torch \
	    --build-constraint constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo dist
