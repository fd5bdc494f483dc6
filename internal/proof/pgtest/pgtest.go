// Package pgtest gives tests a real PostgreSQL: never a mock, never a server that somebody has to set up.
//
// Most tests want an empty database and do not care where it lives:
//
//	url := pgtest.New(t)
//
// The first such call in a test process starts a cluster, and every later one only creates a database in it. A suite
// that needs its schema in each database prepares it once and clones it per test, which costs some 30 ms:
//
//	var migrated = pgtest.NewTemplate(func(ctx context.Context, url string) error { … })
//
//	url := migrated.New(t)
//
// A test that restarts its server, kills it or needs settings of its own starts a private one:
//
//	server := pgtest.Start(t, pgtest.Options{Fsync: true})
//	server.Kill()
//	server.Restart(pgtest.Fast)
//
// A private server has standbys that can be promoted ([Server.Standby]), a disk that can be filled ([Options].Space), a
// clock that can be set ([Options].Clock), and is dumped and restored ([Server.Dump]).
//
// And a test that must hold on several major versions runs once per version:
//
//	pgtest.Each(t, func(t *testing.T, server *pgtest.Server) { url := server.New(t); … })
//
// # Which server
//
// The newest installation found is used; see [Find] for where it looks. A machine without one fails the tests with a
// message that says what to do; it never skips them, because a suite that is green without a database says nothing.
// Two environment variables steer: STINT_PG_BIN names the directory of the binaries to use, and STINT_PG_MAJORS
// ("13,18") the versions that [Each] runs on.
//
// # What is left behind
//
// Nothing. Everything of a cluster lies in one run directory below the temporary directory. A watchdog process holds
// the reading end of a pipe whose writing end only the test process has; however that process ends, by a panic, a
// timeout or kill -9, the pipe closes, and the watchdog stops the server and removes the run directory. Should the
// watchdog be killed too, then the next run removes what it finds abandoned.
//
//	test process ──────── pipe ────────▶ watchdog        one run directory
//	   │  holds owner.lock                  │              owner.lock   held while the owner lives
//	   └── starts ──▶ postgres ◀── stops ───┘              data/        postgres.log   .s.PGSQL.<port>
//
// No goroutine runs on behalf of a server, so leak detectors have nothing to see. A server is a process and knows
// nothing of fake time: use it outside synctest bubbles.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startLimit bounds everything that waits for a server: initdb, start, crash recovery, stop. It is far above what
// any of them takes, so that only a hanging server meets it and not a slow machine.
const startLimit = time.Minute

// New returns the URL of a new, empty database in the shared cluster of the newest version found. The database
// is dropped when the test ends, together with the connections that the test left open.
func New(t testing.TB) string {
	t.Helper()
	return Shared(t, 0).New(t)
}

// Main runs the tests of a package and then stops the shared clusters before the process exits. Without it the
// watchdog stops them a moment later, so a package needs this only where it has more to do in its TestMain.
func Main(m *testing.M) {
	os.Exit(Runner{m}.Run())
}

// Runner is what Main uses, for tools that want to run the tests themselves:
//
//	goleak.VerifyTestMain(pgtest.Runner{M: m})
type Runner struct{ M *testing.M }

// Run runs the tests, stops the shared clusters and returns the exit code of the tests.
func (r Runner) Run() int {
	code := r.M.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	return code
}

// Require fails the test now unless PostgreSQL of that major version is installed; 0 stands for any version.
func Require(t testing.TB, major int) Installation {
	t.Helper()
	installation, err := Find(major)
	if err != nil {
		t.Fatal(err)
	}
	return installation
}

// Each runs f as a subtest on the shared cluster of every major version that STINT_PG_MAJORS names, or only on the newest
// one found when the variable is empty. A version that is named and not installed fails the test.
func Each(t *testing.T, f func(t *testing.T, server *Server)) {
	t.Helper()
	majors, err := majorsToTest(os.Getenv("STINT_PG_MAJORS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, major := range majors {
		installation := Require(t, major)
		t.Run(fmt.Sprintf("postgres%d", installation.Major), func(t *testing.T) {
			f(t, Shared(t, installation.Major))
		})
	}
}

// majorsToTest reads a list such as "13,18"; the empty list stands for whatever is newest, which is major 0.
func majorsToTest(list string) ([]int, error) {
	if strings.TrimSpace(list) == "" {
		return []int{0}, nil
	}
	var majors []int
	for field := range strings.SplitSeq(list, ",") {
		major, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || major < OldestMajor {
			return nil, fmt.Errorf("STINT_PG_MAJORS=%q: %q is not a major version from %d on", list, field, OldestMajor)
		}
		majors = append(majors, major)
	}
	return majors, nil
}

// shortly returns a context for one administrative statement. It does not derive from the test's context, because that
// one has ended when cleanup functions run.
func shortly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), startLimit)
}
