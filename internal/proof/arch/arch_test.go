package arch

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestThisModuleKeepsTheRules(t *testing.T) {
	tree := os.DirFS("../../..")
	imports, err := Imports(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{".", "internal/proof/arch", "internal/proof/pgtest"} {
		if !slices.ContainsFunc(imports, func(i Import) bool { return i.Package == pkg }) {
			t.Errorf("the package %s was not looked at", pkg)
		}
	}
	violations, err := Check(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// source is a file of a package that has the imports given.
func source(imports ...string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("package p\n\nimport (\n\t\"" + strings.Join(imports, "\"\n\t\"") + "\"\n)\n")}
}

func TestWhatTheRulesForbidIsFound(t *testing.T) {
	cases := map[string]struct {
		file    string
		imports string
		want    string // part of the only violation; nothing if there shall be none
	}{
		"a store imports the language":          {"postgres/claim.go", module, ""},
		"a program imports the engine":          {"internal/cli/work.go", module + "/engine", ""},
		"an example imports a store":            {"examples/mail/main.go", module + "/sqlite", ""},
		"a program chooses its database":        {"cmd/stint/main.go", "github.com/jackc/pgx/v5", ""},
		"a disk knows its driver":               {"internal/proof/powerloss/disk.go", "github.com/ncruces/go-sqlite3", ""},
		"a program reads its settings":          {"internal/cli/config.go", "github.com/pelletier/go-toml/v2/unstable", ""},
		"a store knows its driver":              {"postgres/open.go", "github.com/jackc/pgx/v5/pgxpool", ""},
		"a suite imports testing":               {"storetest/claim.go", "testing", ""},
		"the API's client knows its types":      {"remote/jobs.go", module + "/api", ""},
		"the fetch command belongs to pgtest":   {"internal/proof/pgtest/fetch/main.go", module + "/internal/proof/pgtest", ""},
		"a similar name is another package":     {"engine/loop.go", "testingground.example", ""},
		"test files look sideways":              {"engine/loop_test.go", module + "/postgres", ""},
		"a measurement is of another module":    {"bench/burn.go", module + "/nowhere", ""},
		"other modules have rules of their own": {"bench/peers/main.go", module + "/nowhere", ""},
		"test data is no package":               {"engine/testdata/bad.go", module + "/postgres", ""},

		"rank 4 imports rank 4":              {"engine/loop.go", module + "/postgres", "engine (rank 4) imports postgres (rank 4)"},
		"rank 0 imports the language":        {"retry/retry.go", module, "retry (rank 0) imports . (rank 1)"},
		"rank 0 imports rank 0":              {"cron/cron.go", module + "/retry", "only lower ranks"},
		"the language imports the engine":    {"job.go", module + "/engine", ". (rank 1) imports engine (rank 4)"},
		"a helper imports a program":         {"stinttest/work.go", module + "/internal/cli", "only lower ranks"},
		"an example imports an example":      {"examples/a/main.go", module + "/examples/b", "only lower ranks"},
		"the language speaks HTTP":           {"client.go", "net/http", "does no HTTP"},
		"the language profiles over HTTP":    {"client.go", "net/http/pprof", "does no HTTP"},
		"the language knows SQL":             {"client.go", "database/sql", "only a store knows its driver"},
		"the language knows a driver":        {"client.go", "github.com/jackc/pgx/v5", "only a store knows its driver"},
		"a test server knows a store":        {"internal/proof/pgtest/server.go", module + "/postgres", "only lower ranks"},
		"the dashboard knows a driver":       {"api/jobs.go", "database/sql/driver", "only a store knows its driver"},
		"pages describe an API":              {"dashboard/page.go", "github.com/danielgtaylor/huma/v2", "which is for ops and api"},
		"the API imports its client":         {"api/api.go", module + "/remote", "api (rank 6) imports remote (rank 7)"},
		"the API imports its server":         {"api/api.go", module + "/dashboard", "api (rank 6) imports dashboard (rank 8)"},
		"the lines of a log know no metrics": {"observe/log.go", "github.com/prometheus/client_golang/prometheus", "which is for observe/prom"},
		"the lines of a log speak no HTTP":   {"observe/log.go", "net/http", "which is for observe/probes"},
		"metrics know no traces":             {"observe/prom/events.go", "go.opentelemetry.io/otel/trace", "which is for observe/spans"},
		"an engine knows no metrics":         {"engine/beat.go", "github.com/prometheus/client_golang/prometheus", "which is for observe/prom"},
		"metrics are made in their leaf":     {"observe/prom/events.go", "github.com/prometheus/client_golang/prometheus", ""},
		"an http job speaks HTTP":            {"jobs/httpjob/httpjob.go", "net/http", ""},

		"an engine reads a file":            {"engine/config.go", "github.com/pelletier/go-toml/v2", "which is for programs"},
		"a helper reads flags":              {"stinttest/load.go", "github.com/spf13/pflag", "which is for programs"},
		"a package is new":                  {"util/util.go", "fmt", "the package util has no rank: add it to the table"},
		"a new package is imported":         {"engine/loop.go", module + "/util", "the package util has no rank"},
		"an inner package is new too":       {"engine/loop/loop.go", "fmt", "the package engine/loop has no rank"},
		"production imports testing":        {"engine/loop.go", "testing", "which is for tests"},
		"production imports synctest":       {"engine/loop.go", "testing/synctest", "which is for tests"},
		"production imports cmp":            {"engine/loop.go", "github.com/google/go-cmp/cmp", "which is for tests"},
		"a program imports testscript":      {"cmd/stint/main.go", "github.com/rogpeppe/go-internal/testscript", "for tests"},
		"a program imports the test server": {"internal/cli/demo.go", module + "/internal/proof/pgtest", "which is for tests"},
		"a program imports the suite":       {"internal/cli/demo.go", module + "/storetest", "which is for tests"},
		"pages drive a browser":             {"dashboard/page.go", "github.com/chromedp/chromedp", "which is for tests"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{c.file: source(c.imports), "bench/go.mod": {}}
			violations, err := Check(tree)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(violations) > 0:
				t.Errorf("found %v in an innocent tree", violations)
			case c.want != "" && len(violations) != 1:
				t.Errorf("found %d violations %v, want one", len(violations), violations)
			case c.want != "" && !strings.Contains(violations[0].Reason, c.want):
				t.Errorf("found %q, want %q", violations[0].Reason, c.want)
			}
		})
	}
}

func TestAViolationSaysWhereItIs(t *testing.T) {
	violations, err := Check(fstest.MapFS{"engine/loop.go": source("fmt", module+"/sqlite")})
	if err != nil || len(violations) != 1 {
		t.Fatalf("found %v, %v; want one violation", violations, err)
	}
	if got := violations[0].String(); !strings.HasPrefix(got, "engine/loop.go:5:2: ") {
		t.Errorf("%q does not begin with the place", got)
	}
}

func TestANewPackageIsReportedOnceEvenWithoutImports(t *testing.T) {
	violations, err := Check(fstest.MapFS{
		"common/a.go": {Data: []byte("package common\n")},
		"common/b.go": source("fmt", "io"),
	})
	if err != nil || len(violations) != 1 {
		t.Errorf("found %v, %v; want one violation", violations, err)
	}
}

func TestASourceThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := Check(fstest.MapFS{"engine/loop.go": {Data: []byte("pack age")}}); err == nil {
		t.Error("half a source was taken for a whole one")
	}
}

// machinery is what performs jobs. Who only enqueues them must not pay for it.
var machinery = []string{"engine", "jobs/shelljob", "jobs/httpjob", "jobs/stepjob", "ops", "api", "dashboard", "observe", "observe/prom", "observe/spans", "observe/probes"}

func TestAProgramThatOnlyEnqueuesLinksNeitherEngineNorHandlers(t *testing.T) {
	imports, err := Imports(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{"postgres", "sqlite"} {
		reached := Reach(imports, ".", store)
		for _, pkg := range reached {
			if slices.Contains(machinery, pkg) {
				t.Errorf("a program that imports stint and %s links %s", store, pkg)
			}
		}
		if !slices.Contains(reached, "retry") {
			t.Errorf("of what stint and %s import only %v was seen", store, reached)
		}
	}
}

func TestAnArrowToTheMachineryIsFoundHoweverFarItGoesRound(t *testing.T) {
	tree := fstest.MapFS{
		"job.go":               source("fmt", module+"/retry"),
		"retry/policy.go":      source("time"),
		"retry/policy_test.go": source(module + "/jobs/shelljob"), // not linked
		"sqlite/open.go":       source(module, module+"/internal/files"),
		"internal/files/a.go":  source(module + "/internal/other"),
		"internal/other/a.go":  source(module+"/engine", module+"/internal/files"), // a circle ends
		"engine/engine.go":     source(module),
	}
	imports, err := Imports(tree)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Reach(imports, ".", "sqlite"), []string{".", "engine", "internal/files", "internal/other", "retry", "sqlite"}; !slices.Equal(got, want) {
		t.Errorf("reached %v, want %v", got, want)
	}
	if got := Reach(imports, "."); !slices.Equal(got, []string{".", "retry"}) {
		t.Errorf("from the root alone %v is reached", got)
	}
}
