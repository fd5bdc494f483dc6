# The one place that knows how stint is built, tested and measured. CI runs the same targets; see .ci/run.

GO        ?= go
FUZZTIME  ?= 20s
KEEP      ?= 8
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
MAJORS    ?= 13 18
ARGS      ?=
SEEDS     ?= 1000
AXE       := 4.14.1

comma := ,
empty :=
space := $(empty) $(empty)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z\/-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The packages whose goroutines share memory. All others run with the race detector in `make test-all` only, and so does
# ./postgres, whose suite takes four times as long with it; what shares memory there, engines use in their tests.
RACED := \
	. \
	./engine \
	./gateway \
	./faktory \
	./sqlite/... \
	./observe/... \
	./stinttest \
	./jobs/stepjob \
	./jobs/shelljob \
	./jobs/httpjob \
	./dashboard \
	./api \
	./remote \
	./internal/sample
# .                              clients, and what all who wait share
# ./engine                       stages, signals and chores of each worker
# ./gateway                      handlers of engines and requests of workers that meet in a run
# ./faktory                      connections of a worker that share what it holds
# ./sqlite                       the writer's queue; the suite has many workers on it
# ./observe                      several engines report to one listener
# ./stinttest                    a worker next to its test
# ./jobs/stepjob ./jobs/shelljob ./jobs/httpjob handlers that report progress while others read output, or wait
# ./dashboard ./api …/remote   one snapshot of a page for all who have it open, and streams of events
# ./internal/sample              one query for all who ask at once

# SQLite is Go code that was translated from C. A connection has its memory to itself, and what guards a connection is instrumented;
# the detector makes this code six times slower and finds nothing in it. `make test-all` instruments it too.
UNRACED := -gcflags='github.com/ncruces/go-sqlite3-wasm/...=-race=false'

# The detector's own code crashes now and then where a timer of a test with virtual time begins a goroutine: twice in some
# twenty runs. In Go code the line would begin with "[signal". Only what failed runs again.
DETECTOR_CRASH := ^SIGSEGV: segmentation violation|ThreadSanitizer: CHECK failed

# A program with the race detector sleeps for a second before it exits, in case
# that somebody else still reports a race. The tests run hundreds of programs.
test test-all: export GORACE ?= atexit_sleep_ms=20

# Three tiers; CONTRIBUTING.md says what runs in which. `make vet` vets the tests as well.
.PHONY: test
test: postgres browser pgbouncer faketime python ## run the tests on the newest PostgreSQL found; packages with shared memory with the race detector
	@raced="$$($(GO) list $(RACED))" && all="$$($(GO) list ./...)" && \
	others="$$(echo "$$all" | grep -vxF "$$raced")" && code=0 && \
	{ $(GO) test -short -vet=off -timeout 60m $$others || code=1; } && \
	race() { $(GO) test -short -vet=off -race $(UNRACED) -timeout 60m $$raced; } && \
	log="$$(mktemp)" && { race >"$$log" 2>&1; raced_code=$$?; cat "$$log"; } && \
	if [ $$raced_code != 0 ] && grep -qE '$(DETECTOR_CRASH)' "$$log"; then \
		echo "== the race detector itself crashed; once more"; race; raced_code=$$?; \
	fi; rm -f "$$log"; [ $$raced_code = 0 ] || code=1; exit $$code

.PHONY: test-all
test-all: postgres browser pgbouncer faketime python ## run all tests, also long ones, all with the race detector
	$(GO) test -race -timeout 60m ./...
	@# With the race detector the simulator has no time to look for the bugs that are planted in it.
	$(GO) test -timeout 60m ./internal/proof/sim

.PHONY: release-test
release-test: ## run what .ci/run leaves out, before a release is merged (about an hour)
	$(MAKE) model
	$(MAKE) cross
	$(MAKE) sim SEEDS=1000
	$(MAKE) test-all
	$(MAKE) conformance MAJORS="13 14 15 16 17 18"
	$(MAKE) conformance-pooled
	$(MAKE) mutants

# Each night has seeds of its own, after the day.
.PHONY: nightly
nightly: DAY := $(shell date -u +%Y%m%d)
nightly: ## run what takes hours: faults of processes, servers and disks, long simulations, fuzzing, all guards
	$(MAKE) sim SEEDS=10000 FROM=$(DAY)0000
	$(MAKE) chaos MINUTES=30
	$(MAKE) chaos-file MINUTES=20
	$(MAKE) schedules MINUTES=10
	$(MAKE) endurance MINUTES=10
	$(MAKE) powerloss SEEDS=5000
	$(MAKE) cron
	$(MAKE) fuzz FUZZTIME=1m
	$(MAKE) model ARGS=-thorough
	$(MAKE) guards ARGS=-all
	$(MAKE) peers-test
	$(MAKE) links

.PHONY: links
links: ## ask every external link of the pages whether it still leads somewhere (needs the internet)
	$(GO) test -count=1 -run '^TestExternalLinks' -v ./internal/proof/pages -links

.PHONY: conformance
conformance: ## run what depends on the server, on the oldest and the newest PostgreSQL (MAJORS="13 18", ARGS=-short for fewer rows)
	$(GO) run ./internal/proof/pgtest/fetch $(MAJORS)
	@# A pattern that matches nothing passes, so make sure that it matches.
	@$(GO) test -list Conformance ./postgres/... | grep -q '^Test' || { echo 'no test of ./postgres/... is named Conformance'; exit 1; }
	STINT_PG_MAJORS=$(subst $(space),$(comma),$(strip $(MAJORS))) $(GO) test $(ARGS) -run 'Conformance|HotStatements|EachRole|SchemaPage' ./postgres/... ./internal/proof/schemapage

.PHONY: conformance-pooled
conformance-pooled: postgres pgbouncer ## the same through PgBouncer in transaction mode, except notifications and the doctor (some minutes)
	STINT_PG_POOLED=1 $(GO) test -count 1 -run Conformance -timeout 20m \
		-skip 'Conformance/.*/pooled/(Listen|Doctor)|Conformance/.*/pooled/.*/.*(_rung_|wakes)' ./postgres

.PHONY: fuzz
fuzz: ## run each fuzz target for a while (FUZZTIME=20s), and keep some texts that led somewhere new in testdata (KEEP=8)
	@cache="$$($(GO) env GOCACHE)/fuzz"; \
	grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n 1 dirname | sort -u | while read -r dir; do \
		for target in $$($(GO) test -list '^Fuzz' "$$dir" | grep '^Fuzz'); do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
			found="$$cache/$$($(GO) list "$$dir")/$$target"; kept="$$dir/testdata/fuzz/$$target"; \
			[ -d "$$found" ] && [ "$$(ls "$$kept" 2>/dev/null | wc -l)" -lt $(KEEP) ] || continue; \
			mkdir -p "$$kept"; \
			ls "$$found" | head -n $(KEEP) | while read -r file; do cp "$$found/$$file" "$$kept/"; done; \
		done; \
	done

.PHONY: cron
cron: ## compare the recurrences of twenty years in all odd time zones with a slow oracle (three minutes)
	STINT_CRON_YEARS=1 $(GO) test -count 1 -timeout 0 -run 'OracleSays$$' -v ./cron

.PHONY: sim
sim: ## simulate fleets in fake time (SEEDS=1000 FROM=1), or replay one simulation (SEED=42 REPEAT=10)
	STINT_SIM_SEEDS=$(SEEDS) STINT_SIM_FROM=$(FROM) STINT_SIM_SEED=$(SEED) STINT_SIM_REPEAT=$(REPEAT) \
		$(GO) test -count 1 -timeout 0 -run '^TestSeeds$$' -v ./internal/proof/sim

.PHONY: chaos
chaos: postgres pgbouncer faketime ## break real processes and a real PostgreSQL as production does (MINUTES=30 SEED=42 ACCOUNTS=file)
	STINT_CHAOS_MINUTES=$(or $(MINUTES),30) STINT_CHAOS_SEED=$(SEED) STINT_CHAOS_ACCOUNTS=$(abspath $(ACCOUNTS)) \
		$(GO) test -count 1 -timeout 0 -skip 'FiveEnginesFire|OneFile|Endurance' -v ./internal/proof/chaos

.PHONY: clients
clients: postgres ## test the clients of other languages, and kill their workers and gateways (needs python3, node and npm) (JOBS=1000000)
	STINT_CHAOS_JOBS=$(JOBS) $(GO) test -count 1 -timeout 0 -v ./internal/proof/clients

.PHONY: chaos-file
chaos-file: ## kill workers and producers of an SQLite file, and fill its disk (as root) (MINUTES=20 SEED=42 ACCOUNTS=file)
	STINT_CHAOS_MINUTES=$(or $(MINUTES),20) STINT_CHAOS_SEED=$(SEED) STINT_CHAOS_ACCOUNTS=$(abspath $(ACCOUNTS)) \
		$(GO) test -count 1 -timeout 0 -run 'OneFile|OnAFullDisk' -v ./internal/proof/chaos

.PHONY: schedules
schedules: postgres ## fire a thousand schedules of a minute on five engines that are killed meanwhile (MINUTES=10 SEED=42)
	STINT_CHAOS_MINUTES=$(or $(MINUTES),10) STINT_CHAOS_SEED=$(SEED) \
		STINT_CHAOS_ACCOUNTS=$(abspath $(ACCOUNTS)) $(GO) test -count 1 -timeout 0 -run 'FiveEnginesFire' -v ./internal/proof/chaos

.PHONY: endurance
endurance: postgres ## random operations of programs and people, with kills, on both databases (MINUTES=5 SEED=42 ACCOUNTS=file)
	STINT_ENDURANCE_MINUTES=$(or $(MINUTES),5) STINT_CHAOS_SEED=$(SEED) STINT_CHAOS_ACCOUNTS=$(abspath $(ACCOUNTS)) \
		$(GO) test -count 1 -timeout 0 -run '^TestEndurance' -v ./internal/proof/chaos

.PHONY: backlog
backlog: postgres ## pile up jobs, kill the engines that work on them, and delete all, after it or meanwhile; ten million take an hour (JOBS=10000000 SEED=42 ACCOUNTS=file)
	STINT_CHAOS_BACKLOG=$(or $(JOBS),10000000) STINT_CHAOS_SEED=$(SEED) STINT_CHAOS_ACCOUNTS=$(abspath $(ACCOUNTS)) \
		$(GO) test -count 1 -timeout 0 -run '^TestABacklog|^TestJobsThatAreSoonDeleted' -v ./internal/proof/chaos

.PHONY: powerloss
powerloss: ## cut the power of a disk below SQLite at any write (SEEDS=1000), or repeat one run (SEED=42)
	STINT_POWERLOSS_SEEDS=$(SEEDS) STINT_POWERLOSS_SEED=$(SEED) \
		$(GO) test -count 1 -timeout 0 -run '^TestAPowerCut' -v ./sqlite

# Measurements are a module of their own, bench/, and so are the peers that stint is compared with: nobody who builds stint
# downloads them. The server or the file's directory is named by --db; without it, an SQLite file here is measured.
.PHONY: bench
bench: ## measure: burn, steady, latency, flows, single, limit or pages (ARGS="latency --db URL --runs 5"; ARGS= lists them)
	@$(GO) build -C bench -o ../bin/stint-bench .
	@./bin/stint-bench $(if $(filter command line,$(origin ARGS)),$(ARGS),burn)

.PHONY: bench-test
bench-test: postgres ## check and test the measurements
	cd bench && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./...

# The two programs print a table each, with ratios; the second needs a C compiler for the driver that the peers use.
.PHONY: bench/peers
bench/peers: bench/peers/postgres bench/peers/sqlite ## compare with other queues, at length (ARGS="--only burn --runs 1", LITE="--jobs 20000")

.PHONY: bench/peers/postgres
bench/peers/postgres: postgres ## the part on PostgreSQL alone (ARGS)
	cd bench/peers && $(GO) run . $(ARGS)

.PHONY: bench/peers/sqlite
bench/peers/sqlite: ## the part on SQLite alone (LITE)
	cd bench/peers/sqlite && $(GO) run . $(LITE)

.PHONY: peers-test
peers-test: postgres ## check and test the comparison with other queues, which CI does not
	cd bench/peers && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./...
	cd bench/peers/sqlite && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./...

# What reads the files of deploy/ is a module of its own: nobody who builds stint downloads it.
.PHONY: deploy-test
deploy-test: postgres systemd buildah ## check the files of deploy/, and start what they start
	@# The files are of another module, whose changes the cache of results does not see.
	cd internal/proof/deploy && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test -count=1 ./...

.PHONY: release
release: ## build what a release consists of into dist/, as the commit says; a tag makes it a version (PLATFORMS)
	GO='$(GO)' bash .ci/release $(PLATFORMS)

.PHONY: build
build: ## build the command into bin/stint
	$(GO) build -trimpath -o bin/stint ./cmd/stint

.PHONY: lint
lint: fmt vet fix staticcheck ## check format, vet, modern Go and staticcheck

.PHONY: fmt
fmt: ## check that gofmt has nothing to change
	@files="$$(gofmt -l .)"; [ -z "$$files" ] || { echo "to be formatted with gofmt -w:"; echo "$$files"; exit 1; }

.PHONY: vet
vet: ## run go vet
	$(GO) vet ./...

.PHONY: fix
fix: ## check that go fix has nothing to modernise
	@diff="$$($(GO) fix -diff ./...)" || [ -n "$$diff" ] || exit 1; \
	[ -z "$$diff" ] || { echo "$$diff"; echo "to be fixed with: go fix ./..."; exit 1; }

.PHONY: staticcheck
staticcheck: ## run staticcheck in the version that tools/go.mod pins
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

.PHONY: tidy
tidy: ## check that go mod tidy has nothing to change
	$(GO) mod tidy -diff
	$(GO) -C tools mod tidy -diff

.PHONY: arch
arch: ## check who imports whom
	$(GO) test ./internal/proof/arch

.PHONY: model
model: spin ## search the models of claim, finish, beat and burial, and of permits, exhaustively (ARGS=-thorough for more)
	$(GO) test -count=1 -v -timeout 2h ./internal/proof/model -model $(ARGS)

.PHONY: schema-page
schema-page: postgres ## after the schema was edited: write docs/schema.md, and what the doctor compares with
	$(GO) test -count=1 -run '^TestTheManifest' ./postgres -update
	$(GO) test -count=1 -run '^TestTheSchemaPageIsWhatIsInstalled$$' ./internal/proof/schemapage -update

.PHONY: reference-pages
reference-pages: ## after commands, settings or the API were changed: write docs/commands.md, docs/settings.md and docs/api.md
	$(GO) test -count=1 -run '^Test(ThePageOf|TheDocumentIs)' ./internal/cli ./api -update

.PHONY: reliability-page
reliability-page: ## after runs of chaos were kept: write their table into docs/reliability.md
	$(GO) test -count=1 -run '^TestThePageOfReliability' ./internal/proof/chaos -update

.PHONY: monitoring-page
monitoring-page: ## after metrics were changed: write their table into docs/monitoring.md
	$(GO) test -count=1 -run '^TestThePage' ./internal/proof/monitoring -update

.PHONY: mutants
mutants: postgres ## take the fixes of known traps out, one at a time: a test must fail for each (ARGS='-only REGEXP')
	$(GO) test -count=1 -timeout 60m ./internal/proof/mutate -mutants $(ARGS)

# Interrupted it has written down what it came to. ARGS: '-only claim.sql' runs a part, -all also those that have a test, which takes hours and tens of GB of Go's build cache.
.PHONY: guards
guards: postgres ## take each clause of the SQL out that has no test in internal/proof/mutate/guards.txt, and find one (ARGS=-all)
	$(GO) test -count=1 -timeout 0 -run '^Test(AChangeOfNothingIsNoticedByNoTest|EachGuardHasItsKiller)$$' -v ./internal/proof/mutate -guards $(ARGS)

.PHONY: spin
spin: ## make sure that Spin, which searches the model, is installed
	@command -v spin >/dev/null || { \
		command -v apt-get >/dev/null || { echo 'spin is not installed, and there is no apt-get: see https://spinroot.com, or brew install spin'; exit 1; }; \
		$(call apt,spin) || \
		{ echo 'spin cannot be installed: apt-get install spin'; exit 1; }; }
	@command -v gcc >/dev/null || { echo 'gcc is not installed; Spin needs it: apt-get install gcc'; exit 1; }

# The package is unpacked and not installed, since it would start a server that stays.
.PHONY: prometheus
prometheus: ## make sure that Prometheus is there, which tests the alert rules
	@[ -x bin/prometheus/usr/bin/promtool ] || { command -v promtool && command -v prometheus; } >/dev/null || { \
		command -v apt-get >/dev/null || { echo 'Prometheus is not installed, and there is no apt-get: see https://prometheus.io/download, or brew install prometheus'; exit 1; }; \
		sudo=; [ "$$(id -u)" = 0 ] || sudo='sudo -n'; \
		mkdir -p bin/prometheus && cd bin/prometheus && \
		{ apt-get download -qq prometheus || { $$sudo apt-get update -qq && apt-get download -qq prometheus; }; } >/dev/null && \
		dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb || \
		{ echo 'Prometheus cannot be downloaded: apt-get download prometheus'; exit 1; }; }

# Nobody runs what is built for other platforms, so the compiler need not optimise it; that halves the time. This machine's
# own platform is built as everywhere else, from the same cache.
.PHONY: cross
cross: ## build and vet for every platform that stint supports
	@set -e; own="$$($(GO) env GOHOSTOS)/$$($(GO) env GOHOSTARCH)"; for platform in $(PLATFORMS); do \
		echo "$$platform"; \
		if [ "$$platform" = "$$own" ]; then \
			$(GO) build ./...; \
			$(GO) vet ./...; \
		else \
			export GOOS="$${platform%/*}" GOARCH="$${platform#*/}" CGO_ENABLED=0; \
			$(GO) build -gcflags='all=-N -l' ./...; \
			$(GO) vet -gcflags='all=-N -l' ./...; \
			unset GOOS GOARCH CGO_ENABLED; \
		fi; \
	done

# Installs packages of Debian, as root or by a sudo that does not ask.
apt = { sudo=; [ "$$(id -u)" = 0 ] || sudo='sudo -n'; install="$$sudo apt-get install -qq -y --no-install-recommends $(1)"; \
	command -v apt-get && { $$install || { $$sudo apt-get update -qq && $$install; }; } >/dev/null; }

.PHONY: postgres
postgres: ## make sure that a PostgreSQL for the tests is installed
	@$(GO) run ./internal/proof/pgtest/fetch

.PHONY: pgbouncer
pgbouncer: ## make sure that a PgBouncer for the tests is installed
	@[ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || { \
		$(call apt,pgbouncer) || \
		{ echo 'PgBouncer cannot be installed: tests through a pooler are skipped'; }; }

.PHONY: systemd
systemd: ## make sure that systemd-analyze is installed, which checks the units
	@command -v systemd-analyze >/dev/null || { \
		$(call apt,systemd) || \
		{ echo 'systemd cannot be installed: the units are not checked by systemd-analyze'; }; }

.PHONY: buildah
buildah: ## make sure that Buildah is installed, which builds the image
	@command -v buildah >/dev/null || { \
		$(call apt,buildah) || \
		{ echo 'Buildah cannot be installed: the image is not built'; }; }

.PHONY: python
python: ## make sure that a Python with the drivers of PostgreSQL is there, for the tests of its client
	@for python in python3 /usr/bin/python3; do ! $$python -c 'import psycopg, psycopg2, asyncpg' 2>/dev/null || exit 0; done; \
		$(call apt,python3 python3-psycopg python3-psycopg2 python3-asyncpg) || \
		{ echo 'The drivers of Python cannot be installed: tests that enqueue in a transaction of Python are skipped'; }

.PHONY: faketime
faketime: ## make sure that libfaketime is there, with which tests set the clock of a server
	@for file in /usr/lib/*/faketime/libfaketimeMT.so.1 /usr/lib*/faketime/libfaketimeMT.so.1 /usr/local/lib/faketime/libfaketimeMT.so.1; do [ ! -f "$$file" ] || exit 0; done; \
		$(call apt,libfaketime) || \
		{ echo 'libfaketime cannot be installed: tests with a wrong clock are skipped'; }

# Without these, the tests that need them are skipped. Axe is for tests alone, so its licence (MPL-2.0) binds nothing
# that stint consists of.
.PHONY: browser
browser: ## make sure that a Chromium for the tests is installed, and axe, which checks accessibility
	@for name in chromium chromium-browser google-chrome chrome headless-shell; do command -v $$name >/dev/null && exit 0; done; \
		[ ! -d /Applications/Chromium.app ] && [ ! -d '/Applications/Google Chrome.app' ] || exit 0; \
		$(call apt,chromium) || \
		{ echo 'Chromium cannot be installed: tests in a browser are skipped'; }
	@[ -f .cache/axe-core/axe.min.js ] || { mkdir -p .cache && cd .cache && npm pack --silent axe-core@$(AXE) >/dev/null && \
		tar xzf axe-core-$(AXE).tgz && rm -rf axe-core && mv package axe-core && rm axe-core-$(AXE).tgz; } || \
		{ echo 'axe cannot be fetched through npm: tests of accessibility are skipped'; }

.PHONY: screenshots
screenshots: browser ## write pictures of every page into docs/images/dashboard, from a real run
	STINT_SCREENSHOTS=$(CURDIR)/docs/images/dashboard $(GO) test -count 1 -run '^TestScreenshots$$' -v ./dashboard/browser

.PHONY: ci
ci: ## do what CI does
	CI=true bash .ci/run
