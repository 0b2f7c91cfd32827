# ax: make help lists what there is.
GO      ?= go
BIN     := bin
TOOL    := $(GO) tool -modfile=tools/go.mod
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)
GOFILES  = $(shell git ls-files -co --exclude-standard '*.go' | grep -v '\.pb\.go$$')

# DEMO_FOR ends the demo by itself, as in DEMO_FOR=15s; without it Ctrl-C does.
DEMO_FOR ?=
# NAME and ROUNDS choose a drill and its length; BENCH one of the bench's lines.
NAME   ?= all
ROUNDS ?= 10
SEED   ?=
# SHORT is for check, which runs on busy machines, and in containers that may mount nothing.
SHORT  := -without full -claim-within 15s -judge-within 30s
# SEEDS is how many histories make sim tries; with SEED it repeats that one.
SEEDS  ?= 2000
BENCH  ?= all
# FIRINGS and RATE (a second) are the soak's.
FIRINGS ?= 1000000
RATE    ?= 2000

export CGO_ENABLED ?= 0

.PHONY: help build demo check test race fmt bench soak drill sim fuzz sizes verify deps

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

build: ## axctl and axd into bin/
	@mkdir -p $(BIN)
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/axctl ./cmd/axd

demo: build ## run examples/demo.hcl on a temporary store and print each firing
	$(BIN)/axd -demo examples/demo.hcl $(if $(DEMO_FOR),-for $(DEMO_FOR))

check: deps ## what CI runs: format, vet, staticcheck, all tests, short drills
	@echo "== gofumpt"; out=$$($(TOOL) gofumpt -l $(GOFILES)); test -z "$$out" || { echo "not formatted (make fmt):"; echo "$$out"; exit 1; }
	@echo "== vet"; $(GO) vet ./...
	@echo "== staticcheck"; $(TOOL) staticcheck ./...
	@echo "== test"; $(GO) test -timeout 10m ./...
	@echo "== example plugins"; for d in examples/plugins/*/; do (cd $$d && $(GO) vet ./... && $(GO) test ./...) || exit 1; done
	@echo "== drills"; $(MAKE) --no-print-directory drill ROUNDS=2 DRILLFLAGS='$(SHORT)'

test: ## all tests
	$(GO) test ./...

race: deps ## all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...

fmt: ## format the code
	$(TOOL) gofumpt -w $(GOFILES)

bench: build ## measure: ratios against a baseline of the same run (BENCH=name for one)
	$(GO) build -trimpath -o $(BIN)/bench ./bench
	$(BIN)/bench -run $(BENCH)

soak: build ## a million firings with retention on; fails when anything grows or is late (FIRINGS=, RATE=)
	$(GO) build -trimpath -o $(BIN)/bench ./bench
	$(BIN)/bench -run soak -firings $(FIRINGS) -rate $(RATE)

drill: build ## break it with real processes, see docs/reliability.md (NAME=, ROUNDS=, SEED=)
	$(GO) build -trimpath -o $(BIN)/ ./drills ./drills/ledger
	@mkdir -p $(BIN)/failpoint
	$(GO) build -trimpath -tags failpoint -ldflags '$(LDFLAGS)' -o $(BIN)/failpoint/ ./cmd/axctl ./cmd/axd
	$(BIN)/drills -axd $(BIN)/axd -axctl $(BIN)/axctl -ledger $(BIN)/ledger -failpoint $(BIN)/failpoint -name $(NAME) -rounds $(ROUNDS) $(if $(SEED),-seed $(SEED)) $(DRILLFLAGS)

sim: ## random histories of one host with faults, and planted bugs (SEEDS=, SEED=)
	$(if $(SEED),,$(GO) test -count=1 -v -run '^TestPlantedBugs$$' ./runtime)
	AX_SIM_SEEDS=$(SEEDS) AX_SIM_SEED=$(SEED) $(GO) test -count=1 -timeout 4h $(if $(SEED),-v) -run '^TestSimulation$$' ./runtime

fuzz: ## fuzz the parsers for FUZZTIME each (default 1m)
	@for target in $$(grep -rlE '^func Fuzz' --include=*_test.go . | xargs -n1 dirname | sort -u); do \
		for f in $$(grep -hoE '^func Fuzz[A-Za-z]+' $$target/*_test.go | sed 's/func //'); do \
			$(GO) test $$target -run '^$$' -fuzz "^$$f$$" -fuzztime $${FUZZTIME:-1m} || exit 1; done; done

sizes: ## the longest files and functions
	@echo "lines of the ten longest files"; wc -l $(GOFILES) | grep -v -e ' total$$' -e '_test.go$$' | sort -rn | head -10
	@echo "lines of the ten longest functions"; awk 'FNR==1{n=""} /^func /{n=$$0; s=FNR} /^}/&&n!=""{print FNR-s+1, FILENAME": "n; n=""}' $(filter-out %_test.go,$(GOFILES)) | sort -rn | head -10 | cut -c1-140

verify: ## generated code is what its sources give; modules are tidy
	plugins/proto/generate.sh
	$(GO) mod tidy
	@git diff --exit-code -- plugins/proto go.mod go.sum || { echo "generated files differ: commit them"; exit 1; }

deps: # what tests and examples need, from Debian's packages, when it is missing
	@missing=""; for c in git openssl sqlite3; do command -v $$c >/dev/null || missing="$$missing $$c"; done; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq $$missing; \
		else echo "install these first:$$missing (apt-get install$$missing)"; exit 1; fi; fi
