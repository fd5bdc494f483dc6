package arch

import (
	"fmt"
	"path"
	"slices"
)

const module = "github.com/stint-go/stint"

// ranks is the table of the package comment. An entry that ends in /* stands for all packages right below a directory.
var ranks = map[string]int{
	"cmd/stint": 10,

	"internal/cli": 9,
	"examples/*":   9,

	"dashboard": 8,

	"remote":  7,
	"faktory": 7,

	"api": 6,
	"ops": 6,

	"dashboard/view":       5,
	"gateway":              5,
	"internal/takeover":    5,
	"stinttest":            5,
	"internal/proof/sim":   5,
	"internal/proof/chaos": 5,

	"engine":          4,
	"postgres":        4,
	"sqlite":          4,
	"storetest":       4,
	"dashboard/guard": 4,
	"dashboard/link":  4,
	"observe":         4,
	"observe/*":       4,
	"jobs/*":          4,

	"report":               3,
	"event":                3,
	"internal/proof/check": 3,
	"internal/rows":        3,
	"internal/archive":     3,
	"jobs":                 3,

	"store": 2,

	".": 1,

	"retry":                       0,
	"outside":                     0,
	"seal":                        0,
	"cron":                        0,
	"dashboard/chart":             0,
	"dashboard/browser":           0,
	"internal/await":              0,
	"internal/failure":            0,
	"internal/killpoint":          0,
	"internal/steps":              0,
	"internal/proof/*":            0,
	"internal/proof/pgtest/fetch": 0,

	"internal/named":  -1,
	"internal/redact": -1,
	"internal/sample": -1,
	"internal/valid":  -1,
	"internal/wire":   -1,
	"internal/words":  -1,

	"docs":              -2,
	"internal/coalesce": -2,
	"internal/duration": -2,
}

// owners are packages that may import one package of their own rank, because they are a part of it.
var owners = map[string]string{
	"api":                         "ops",
	"internal/failure":            "retry",
	"internal/proof/pgtest/fetch": "internal/proof/pgtest",
}

// forTests are the packages that exist for tests. They may import what only tests need, and no program may import them.
var forTests = []string{"storetest", "stinttest", "dashboard/browser", "internal/proof"}

func isForTests(pkg string) bool { return within(pkg, forTests...) }

// testModules are what only tests need.
var testModules = []string{
	"testing",
	"github.com/chromedp",
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
}

// drivers are what a database is reached through.
var drivers = []string{
	"database/sql",
	"github.com/jackc/pgx",
	"github.com/ncruces/go-sqlite3",
	"modernc.org/sqlite",
}

// forPrograms are what only a program needs that people start and set up.
var forPrograms = []string{
	"github.com/spf13",
	"github.com/jedib0t/go-pretty",
	"github.com/pelletier/go-toml",
}

// watching are what metrics and traces are made with. Each leaf below observe has its own, so that a program pays for
// what it imports.
var watching = map[string]string{
	"github.com/prometheus": "observe/prom",
	"go.opentelemetry.io":   "observe/spans",
	"net/http":              "observe/probes",
}

// describing is what the API is described with.
const describing = "github.com/danielgtaylor/huma"

// stores are the packages up to rank 4 that reach a database: those that keep jobs in one, that start one for tests,
// or are the disk below one.
var stores = []string{"postgres", "sqlite", "internal/proof/pgtest", "internal/proof/powerloss"}

// rank returns the rank of a package, and whether it has one.
func rank(pkg string) (int, bool) {
	if r, ok := ranks[pkg]; ok {
		return r, true
	}
	r, ok := ranks[path.Dir(pkg)+"/*"]
	return r, ok
}

// A rule returns why it does not allow an import by a package that has a rank, or nothing.
var rules = []func(Import) string{lowerRanksOnly, languageWithoutMachinery, driversInStoresOnly, watchingInLeavesOnly, apiDescribesItself, programsKeepTheirOwn, testsStayOut}

func lowerRanksOnly(i Import) string {
	target, ok := inModule(i.Path)
	if !ok || owners[i.Package] == target {
		return ""
	}
	from, _ := rank(i.Package)
	to, known := rank(target)
	switch {
	case !known:
		return unranked(target)
	case to >= from:
		return fmt.Sprintf("%s (rank %d) imports %s (rank %d): only lower ranks may be imported", i.Package, from, target, to)
	}
	return ""
}

// languageWithoutMachinery keeps the root package a language: whoever only names jobs pays for no server and no database.
func languageWithoutMachinery(i Import) string {
	if i.Package == "." && within(i.Path, "net/http") {
		return fmt.Sprintf("the root package imports %s: it is the language of the domain and does no HTTP", i.Path)
	}
	return ""
}

// driversInStoresOnly keeps a driver's types out of everything that the stores are made for. Above rank 4 are
// programs, and programs choose their database; the dashboard is given its store.
func driversInStoresOnly(i Import) string {
	if from, _ := rank(i.Package); from > 4 && !within(i.Package, "ops", "api", "remote", "dashboard") || slices.Contains(stores, i.Package) || !within(i.Path, drivers...) {
		return ""
	}
	return fmt.Sprintf("%s imports %s: only a store knows its driver", i.Package, i.Path)
}

// watchingInLeavesOnly spares whoever wants lines of a log, or nothing, what metrics and traces are made with.
func watchingInLeavesOnly(i Import) string {
	from, _ := rank(i.Package)
	for made, leaf := range watching {
		if from <= 4 && i.Package != leaf && within(i.Path, made) && (made != "net/http" || within(i.Package, "observe")) {
			return fmt.Sprintf("%s imports %s, which is for %s", i.Package, i.Path, leaf)
		}
	}
	return ""
}

// apiDescribesItself keeps the library that describes the API where operations are declared and served.
func apiDescribesItself(i Import) string {
	if i.Package != "api" && i.Package != "ops" && within(i.Path, describing) {
		return fmt.Sprintf("%s imports %s, which is for ops and api", i.Package, i.Path)
	}
	return ""
}

// programsKeepTheirOwn spares whoever imports a package what the command line is made of.
func programsKeepTheirOwn(i Import) string {
	if from, _ := rank(i.Package); from > 6 || !within(i.Path, forPrograms...) {
		return ""
	}
	return fmt.Sprintf("%s imports %s, which is for programs", i.Package, i.Path)
}

func testsStayOut(i Import) string {
	if isForTests(i.Package) {
		return ""
	}
	target, ok := inModule(i.Path)
	if within(i.Path, testModules...) || ok && isForTests(target) {
		return fmt.Sprintf("%s imports %s, which is for tests: a production file must not", i.Package, i.Path)
	}
	return ""
}
