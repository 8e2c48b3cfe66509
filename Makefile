# One verb per task. The work is done by the scripts in tools/; this file only names it.
JOBS ?= $(shell nproc)
LIBLLAMA ?= prebuilt
PORT ?= 8080
MODEL ?= models/fermata-tiny.gguf
ARGS ?=
SECONDS ?= 20
WORKLOADS ?= decode decode-tiny throughput ttft prefix http start park overcommit untouched \
  idle tick lookup reconfigure itl restore restart agents decode-pages
# Not from the environment: some shells export HOST, and it must not open the server to a network.
HOST = 127.0.0.1

export JOBS LIBLLAMA
RELEASE := build/release

.PHONY: help setup build serve test bench tidy format asan tsan fuzz ci clean

help:  ## this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 16
	@echo "JOBS=N limits parallel compilation; LIBLLAMA=system takes an installed libllama."

setup:  ## install what is missing: Debian packages, the prebuilt libllama, clients for tests
	@tools/setup/setup.sh test
	@tools/setup/libllama.sh
	@tools/setup/sdk.sh

build:  ## build build/release/fermata
	@tools/setup/setup.sh serve
	@tools/build $(RELEASE) fermata make-model

serve:  ## set up, build and serve a model: HOST= PORT= MODEL= ARGS="-c 4096 ..."
	@echo "[1/3] packages and libllama"
	@tools/setup/setup.sh serve
	@echo "[2/3] build"
	@tools/build $(RELEASE) fermata
	@echo "[3/3] serve $(MODEL)"
	@exec $(RELEASE)/fermata serve -m $(MODEL) --host $(HOST) --port $(PORT) $(ARGS)

test:  ## set up, build and run every test
	@tools/setup/setup.sh test
	@tools/build $(RELEASE) -DFERMATA_TESTS=ON
	@tools/run-tests --build $(RELEASE)

bench: build  ## measure: WORKLOADS="decode itl"
	@for workload in $(WORKLOADS); do $(RELEASE)/fermata bench $$workload || exit 1; done

tidy:  ## check the style, clang-tidy included
	@tools/setup/setup.sh test
	@tools/build $(RELEASE) fermata
	@tools/tidy --build $(RELEASE)

format:  ## let clang-format rewrite the C++ sources
	@tools/setup/setup.sh test
	@tools/tidy --format

asan:  ## build and test under the address and undefined-behaviour sanitizers
	@tools/setup/setup.sh test
	@tools/build build/asan -DFERMATA_TESTS=ON -DFERMATA_SANITIZE=address,undefined
	@tools/run-tests --build build/asan --only cpp e2e

tsan:  ## build and test the concurrent parts under the thread sanitizer
	@tools/setup/setup.sh test
	@tools/build build/tsan -DFERMATA_TESTS=ON -DFERMATA_SANITIZE=thread \
	  $$(tools/run-tests --only concurrent --list)
	@tools/run-tests --build build/tsan --only concurrent

fuzz:  ## feed random bytes to the parsers: SECONDS=20 for each
	@tools/setup/setup.sh test
	@tools/fuzz $(SECONDS)

ci:  ## what has to be green: test, tidy, asan, tsan
	@.ci/run

clean:  ## remove the build folders
	rm -rf build
