# make build   bin/heddle
# make demo    the main job, configs/demo.yaml: sweep and table
# make test    every test
# make programs  the programs under study (docs/programs.md), into bin/programs
# make bench   the ratios of docs/performance.md; BENCH=-write puts them there
# make check   format, vet, static analysis and tests, and a clean tree after them
#
# Each target first installs the Debian packages that it misses.

# Found anew in each recipe, because a recipe's prerequisites may install it.
GO = $(or $(shell internal/setup/go.sh),$(error heddle: no Go of the version in go.mod; run internal/setup/packages.sh build))
TOOL = $(GO) tool -modfile=internal/tools/go.mod

.PHONY: build demo programs test bench check clean setup-build setup-demo setup-test

build: setup-build
	$(GO) build -o bin/heddle ./cmd/heddle

demo: setup-demo build
	@bin/heddle experiment run configs/demo.yaml; status=$$?; bin/heddle experiment table configs/demo.yaml && exit $$status

programs: setup-test
	$(GO) run ./guest/programs/install bin/programs

test: setup-test build programs
	HEDDLE_BIN=$(CURDIR)/bin/heddle $(GO) test -timeout 40m ./...

bench: setup-test build
	HEDDLE_BIN=$(CURDIR)/bin/heddle GO=$(GO) $(GO) run ./internal/bench $(BENCH)

check: setup-test
	$(TOOL) gofumpt -l -w .
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(MAKE) test
	@test -z "$$(git status --porcelain)" || { git status --short; echo "heddle: the tree is not clean after formatting and tests" >&2; exit 1; }

clean:
	rm -rf bin

setup-build setup-demo setup-test: setup-%:
	@internal/setup/packages.sh $*
