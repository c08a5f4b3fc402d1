# make run   a kernel from nothing: virtual environment, install, the main job.  Needs Python 3.11 or later, nothing else.
# make test  what the tests need from apt and pip, then the tests, the linter and the type checker.
# make sim   only the tests against the outside simulators.
# make lowest  a few tests with the oldest dependencies that pyproject.toml allows.
# make lock  requirements/ anew: the versions, with hashes, that CI installs.
# make reproduce  all kernels whose parameters were searched for, by every Python there is: the same code?  Minutes for each.
# make newest  the smaller ones of them by the newest Python there is, which npm has as WebAssembly.
# make matrix  every method, size and core: proved, simulated, held against its manifest; hours, goes on where it was.
# make hostile  how many bad inputs the tests try; a few minutes.
# make trust  docs/trust-report.md: what was tried so far, of all that these commands left.
# make sweep every method at every size up to 256 bits, proved and run in the simulator, and all cases of the tests of
#            which `make test` runs some; takes minutes.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
LOCK   := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock'
APT    := gcc libc6-dev gcc-avr avr-libc binutils-avr libsimavr-dev libelf-dev qemu-system-misc binutils-arm-none-eabi qemu-system-arm mspdebug

# Tests start programs by the thousand, which take half as long again where nothing compiled may be kept.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test sim answers search-avr search-arm results pictures mutate fuzz hostile trust sweep reproduce newest matrix clean

run: $(VENV)/installed
	$(BIN)/sqgen --isa avr --bits 192 --method sbd
	@echo; sed -n '1,40p' out/sqgen_sqr192_avr.S

test: $(VENV)/tested-with packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 0 -m 'clock and not sweep'
	$(BIN)/python -m pytest -n auto

sim: $(VENV)/tested-with packages
	$(BIN)/python -m pytest -n auto -m 'simulator and not mutate and not sweep and not clock'

answers: $(VENV)/installed  # search for the parameters in schedules/answers; takes minutes
	$(BIN)/python -m sqgen.tune --isa avr
	$(BIN)/python -m sqgen.tune --isa avr --method karatsuba --method karatsuba-squaring --least 520 --most 1024
	$(BIN)/python -m sqgen.tune --isa avr --method bordered --least 136 --most 1024
	$(BIN)/python -m sqgen.hints --isa avr
	$(BIN)/python -m sqgen.front --isa avr --most 256
	$(BIN)/python -m sqgen.front --isa avr --least 288
	$(BIN)/python -m sqgen.tune --isa msp430 --method product-scanning --method rows --method karatsuba --method karatsuba-squaring --most 1024
	$(BIN)/python -m sqgen.tune --isa msp430 --method yang --method lazy-doubling --method sbd --method su --most 96
	$(BIN)/python -m sqgen.tune --isa msp430 --core msp430x-mpy32 --method product-scanning --method karatsuba --method karatsuba-squaring --most 1024
	for core in msp430 msp430x-mpy32; do \
	  $(BIN)/python -m sqgen.front --isa msp430 --most 256 --core $$core && \
	  $(BIN)/python -m sqgen.front --isa msp430 --least 288 --most 512 --core $$core && \
	  $(BIN)/python -m sqgen.front --isa msp430 --least 576 --step 64 --core $$core || exit; done
	$(BIN)/python -m sqgen.tune --isa arm --core cortex-m0 --method product-scanning --least 32 --most 256
	$(BIN)/python -m sqgen.tune --isa arm --core cortex-m0 --method karatsuba --method karatsuba-squaring --least 64 --most 2048
	for bits in 288 544 1056; do \
	  $(BIN)/python -m sqgen.tune --isa arm --core cortex-m0 --method bordered --least $$bits --most $$bits || exit; done
	for core in "cortex-m4 --unrolled 1024" "cortex-m3 --unrolled 640" "cortex-m3 --allow-variable-time --unrolled 640" \
	    "cortex-m0 --unrolled 640"; do \
	  $(BIN)/python -m sqgen.front --isa arm --most 640 --core $$core && \
	  $(BIN)/python -m sqgen.front --isa arm --least 704 --step 64 --core $$core && \
	  $(BIN)/python -m sqgen.front --isa arm --least 1280 --most 2048 --step 256 --core $$core || exit; done
	$(BIN)/python -m sqgen.front --isa arm --least 3072 --most 4096 --step 1024

search-avr: $(VENV)/installed  # by chance, from a seed: docs/search.md; hours, and may be broken off
	$(BIN)/sqgen search --isa avr --method sweeps
	$(BIN)/sqgen search --isa avr --method sweeps --goal call --most 128
	$(BIN)/sqgen search --isa avr --method streamed-karatsuba --least 192 --most 352
	$(BIN)/pip install --quiet --editable '.[assembler]'
	$(BIN)/python tools/order_runs.py --method sweeps --least 40 --most 168
	$(BIN)/python tools/order_runs.py --method streamed-karatsuba --least 160 --most 248

search-arm: $(VENV)/installed  # the same for Cortex-M; hours; `make answers` then has its fronts
	$(BIN)/sqgen search --isa arm --method row-blocks --least 256 --most 1024 --plans 100
	$(BIN)/sqgen search --isa arm --op mul --method row-blocks --least 256 --most 1024 --plans 100
	$(BIN)/python -m sqgen.tune --isa arm --core cortex-m3 --method product-scanning --method rows --method sbd --least 64 --most 288
	$(BIN)/python -m sqgen.tune --isa arm --core cortex-m3 --allow-variable-time --method product-scanning --least 64 --most 512
	$(BIN)/python -m sqgen.tune --isa arm --core cortex-m3 --allow-variable-time --method rows --least 64 --most 288
	$(BIN)/sqgen search --isa arm --core cortex-m3 --method sweeps --least 96 --most 352 --plans 60 --batches 1
	$(BIN)/sqgen search --isa arm --core cortex-m3 --allow-variable-time --method sweeps --least 96 --most 384 --plans 300
	$(BIN)/sqgen search --isa arm --core cortex-m3 --allow-variable-time --method sweeps --least 416 --most 512 --plans 60 --batches 1
	$(BIN)/python -m sqgen.tune --isa arm --core cortex-m3 --method karatsuba-squaring --method karatsuba --least 64 --most 2048
	$(BIN)/python -m sqgen.tune --isa arm --core cortex-m3 --allow-variable-time --method karatsuba-squaring --method karatsuba --least 64 --most 2048
	for time in "" --allow-variable-time; do for method in bordered karatsuba; do \
	  $(BIN)/python -m sqgen.tune --isa arm --core cortex-m3 $$time --method $$method --least 288 --most 2048 || exit; done; done  # parts may be bordered
	$(BIN)/pip install --quiet --editable '.[search]'
	$(BIN)/python -m sqgen.isa.arm_free --op sqr --least 64 --most 512 --rounds 16 --steps 1500000
	$(BIN)/python -m sqgen.isa.arm_free --op mul --least 64 --most 384 --rounds 16 --steps 1500000
	$(BIN)/python -m sqgen.isa.arm_beam --bits 256 --width 100
	$(BIN)/python -m sqgen.isa.arm_anneal --least 64 --most 128 --steps 1000000
	$(BIN)/python -m sqgen.isa.arm_anneal --least 160 --most 256 --rounds 4 --steps 2000000
	$(BIN)/python -m sqgen.isa.arm_anneal --op mul --least 288 --most 1056 --rounds 1 --steps 2500000  # rows around products

# 3.11 and later, as pyenv keeps them or as they lie on the path.
PYTHONS ?= $(BIN)/python $(filter-out %/$(shell $(PYTHON) -c 'import platform; print(platform.python_version())')/bin/python,\
             $(wildcard $(HOME)/.pyenv/versions/3.1[1-9]*/bin/python) $(wildcard /usr/bin/python3.1[2-9]))

# The tests that count bad inputs (tests/hostile.py).
HOSTILE := $(addprefix tests/test_,cli_refusals.py cli_files.py verify.py hostile.py faults.py input.py)

# MATRIX: options of tools/matrix.py, such as --isa avr --most 128.
matrix: $(VENV)/tested-with packages
	$(BIN)/python tools/matrix.py $(MATRIX)

reproduce: $(VENV)/tested-with
	$(BIN)/python tools/reproduce.py $(foreach python,$(PYTHONS),--python $(python))

# NEWEST: options of tools/reproduce.py, such as --isa avr --most 256.
NEWEST ?= --most 128
newest: $(VENV)/tested-with
	npm install --silent --no-save --prefix build/newest pyodide@314.0.7
	$(BIN)/python tools/reproduce.py --python tools/python_wasm.mjs $(NEWEST)

hostile: $(VENV)/tested-with packages  # what must be refused, counted; a few minutes
	$(BIN)/python -m pytest -n 0 -m 'not clock' --tried build/hostile.json $(HOSTILE)

trust: $(VENV)/tested-with  # docs/trust-report.md and the README's line of it, from what was found so far
	$(BIN)/python tools/trust.py --write

mutate: $(VENV)/tested-with packages  # every change of an instruction, of many kernels; hours, and may be broken off
	$(BIN)/python tools/mutate.py
	$(BIN)/python tools/mutate_tables.py
	$(BIN)/python -m pytest -n auto -m mutate

# FUZZ: options of tools/fuzz.py, such as --isa avr --command prove --seconds 600.
fuzz: $(VENV)/tested-with packages  # damaged kernels for prove, verify and check, a minute for each and each instruction set
	$(BIN)/pip install --quiet --editable '.[fuzz]'
	$(BIN)/python tools/fuzz.py $(FUZZ)

sweep: $(VENV)/tested-with packages  # every method at every size up to 256 bits, and all cases of tests; takes minutes
	$(BIN)/python -m pytest -n 0 -m 'sweep and clock'
	$(BIN)/python -m pytest -n auto -m 'sweep and not clock'

# Debian keeps venv in a package of its own, which is installed if we may.
$(VENV)/made:
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || $(MAKE) --no-print-directory packages APT='python3-venv'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/made pyproject.toml
	$(BIN)/pip install --quiet --editable .
	@touch $@

# What tests run with is the same everywhere, down to the hashes; sqgen itself is installed without looking further.
$(VENV)/tested-with: $(VENV)/made pyproject.toml requirements/test.txt
	$(BIN)/pip install --quiet --require-hashes --requirement requirements/test.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# The lower bounds of pyproject.toml are what some user has: the command line must work with just these.
.PHONY: lowest
lowest: packages
	rm -rf $(VENV)-lowest && $(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/pip install --quiet --require-hashes --requirement requirements/lowest.txt
	$(VENV)-lowest/bin/pip install --quiet --no-deps --no-build-isolation --editable .
	$(VENV)-lowest/bin/python -m pytest -n 2 tests/test_cli.py tests/test_cli_files.py tests/test_manifest.py

.PHONY: lock
lock: $(VENV)/installed
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile $(LOCK) --extra test pyproject.toml --output-file requirements/test.txt
	$(BIN)/uv pip compile $(LOCK) --resolution lowest-direct pyproject.toml --output-file requirements/lowest-run.txt
	$(BIN)/uv pip compile $(LOCK) pyproject.toml requirements/lowest.in --constraint requirements/lowest-run.txt --output-file requirements/lowest.txt
	rm requirements/lowest-run.txt

# GNU's assembler for MSP430, of which Debian has the source alone: built once, in a minute or two, if we are root.
.PHONY: gnu-msp430
gnu-msp430:
	@if command -v msp430-elf-as >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ]; then echo "not installed: msp430-elf-as; what needs it is skipped (make gnu-msp430, as root)"; exit 0; fi; \
	set -e; $(MAKE) --no-print-directory packages APT='binutils-source bison flex gcc libc6-dev xz-utils'; \
	mkdir -p build/binutils/made; tar -xf /usr/src/binutils/binutils-*.tar.xz -C build/binutils --strip-components=1; \
	cd build/binutils/made; ../configure --quiet --target=msp430-elf --disable-nls --disable-werror --disable-gdb --disable-sim \
	    --disable-gprofng --disable-ld --disable-doc MAKEINFO=true >/dev/null; \
	make --quiet MAKEINFO=true all-gas >/dev/null; make --quiet MAKEINFO=true install-gas >/dev/null

# Debian packages that are missing are installed if we are root; otherwise the tests say what they skip.
.PHONY: packages
packages:
	@missing=""; for p in $(APT); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	elif sudo -n true 2>/dev/null; then \
	    sudo apt-get update -qq && sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	else echo "not installed:$$missing; what needs them is skipped (apt-get install$$missing)"; fi

clean:
	rm -rf $(VENV) build *.egg-info

results: $(VENV)/tested-with packages  # all sizes in simavr, the computed parts of README.md, docs/results.md and docs/search.md, its pictures; takes minutes
	$(BIN)/python tools/sweep.py --measure
	$(BIN)/python tools/results.py --write
	$(BIN)/sqgen show --method sbd --bits 128 --svg docs/sbd128.svg

pictures: $(VENV)/installed  # docs/methods.md and docs/pictures, after a schedule was added or changed
	$(BIN)/python tools/pictures.py --write
