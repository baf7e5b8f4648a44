# make build   bin/heddle, and bin/heddle-plot, which draws its plots
# make demo    the main job, configs/demo.yaml: sweep and table
# make quick   unit tests and a sample of every other kind: less than three minutes
# make test    every test, many of them on a sample of their cases
# make long    every test on all cases: hours
# make programs  the programs under study (docs/programs.md), into bin/programs
# make servers the servers of docs/servers.md and configs/servers, whose packages it installs without starting them
# make slurm   sweeps on a Slurm of four nodes that the test starts on this host, as root
# make deb     the Debian packages heddle and heddle-papers, into bin/deb
# make strangers  every analysis over programs of Debian (docs/strangers.md), whose packages it installs
# make papers  the papers' tables and figures in one report; PAPERS=--quick is less than 20 minutes
# make bench   the ratios of docs/performance.md; BENCH=-write writes them there
# make check   format, vet, static analysis and tests; fails if they leave the tree changed
# make man     man pages of all commands, into bin/man/man1
# make clean   removes bin
#
# Each target first installs the Debian packages that it misses. TESTS are the packages
# that are tested, ./... unless given, and FLAGS further flags of go test. Tests run on the host's default
# engine (--engine auto); those of the packages ON_UNICORN, on a sample of their cases, on Unicorn as well.

# Evaluated in each recipe, because a recipe's prerequisites may install Go.
GO = $(or $(shell internal/setup/go.sh),$(error heddle: no Go of the version in go.mod; run internal/setup/packages.sh build))
TOOL = $(GO) tool -modfile=internal/tools/go.mod
TESTS = ./...
ON_UNICORN = ./cmd/heddle ./internal/machine/... ./internal/e2e ./guest/programs/conformance ./memmodel/... ./recorder/... \
	./sched/... ./analyses/races ./analyses/races/stream ./experiments/frost
# Of packages whose tests take longer, some.
SOME_ON_UNICORN = -run 'TestReproduces|TestFromCheckpoints|TestFindsTextbookBugs|TestPublishedCounts' ./experiments/h3 ./experiments/find ./experiments/explore
GOTEST = HEDDLE_BIN=$(CURDIR)/bin/heddle internal/setup/still.sh $(GO) test

.PHONY: help build man demo programs quick test long servers slurm strangers deb papers papers-programs bench check clean setup-build setup-demo setup-test setup-servers setup-slurm setup-strangers setup-deb

build: setup-build
	$(GO) build -o bin/ ./cmd/heddle ./cmd/heddle-plot

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

# The table is printed even after failed runs, which it lists.
demo: setup-demo build
	@bin/heddle experiment run configs/demo.yaml; status=$$?; bin/heddle experiment table configs/demo.yaml && exit $$status

man: build
	bin/heddle man bin/man/man1

programs: setup-test
	$(GO) run ./guest/programs/install bin/programs

quick: setup-test build
	$(GOTEST) -short -vet=off $(FLAGS) $(TESTS)

test: setup-test build
	$(GO) run ./guest/programs/install bin/programs O2-static-g
	$(GOTEST) -timeout 40m $(FLAGS) $(TESTS)
	$(if $(filter ./...,$(TESTS)),HEDDLE_ENGINE=unicorn $(GOTEST) -short -vet=off -timeout 40m $(FLAGS) $(ON_UNICORN))
	$(if $(filter ./...,$(TESTS)),HEDDLE_ENGINE=unicorn $(GOTEST) -short -vet=off -timeout 40m $(FLAGS) $(SOME_ON_UNICORN))

long: setup-test build programs
	HEDDLE_LONG=1 $(GOTEST) -timeout 24h $(FLAGS) $(TESTS)
	$(if $(filter ./...,$(TESTS)),HEDDLE_ENGINE=unicorn HEDDLE_LONG=1 $(GOTEST) -timeout 24h $(FLAGS) $(ON_UNICORN))
	$(if $(filter ./...,$(TESTS)),HEDDLE_ENGINE=unicorn HEDDLE_LONG=1 $(GOTEST) -timeout 24h $(FLAGS) $(SOME_ON_UNICORN))

servers: setup-servers build
	$(GOTEST) -timeout 40m -run TestServers -v $(FLAGS) ./internal/e2e
	HEDDLE_SERVERS=1 $(GOTEST) -timeout 40m -v $(FLAGS) ./experiments/servers

slurm: setup-slurm build
	HEDDLE_SLURM=1 $(GOTEST) -timeout 40m -run OnSlurm -v $(FLAGS) ./experiments/slurm

deb: setup-deb build papers-programs
	internal/setup/deb.sh bin/deb

strangers: setup-strangers build
	$(GO) run ./paper-scripts/strangers

# The programs' digests decide which stored rows are still theirs, so they have no version of the repository in them.
papers-programs: setup-build
	$(GO) build -buildvcs=false -o bin/heddle-papers ./paper-scripts/papers
	$(GO) build -buildvcs=false -o bin/papers/ ./paper-scripts/peregrine ./paper-scripts/tern ./paper-scripts/frost ./paper-scripts/h3 ./paper-scripts/dmt

papers: setup-test papers-programs
	bin/heddle-papers $(PAPERS)

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

setup-build setup-demo setup-test setup-servers setup-slurm setup-strangers setup-deb: setup-%:
	@internal/setup/packages.sh $*
