package guards

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/pages"
)

var (
	runNew  = flag.Bool("guards", false, "take out each guard that has no killer on the page, and write the page")
	runAll  = flag.Bool("all", false, "with -guards: those with a killer too")
	quick   = flag.Bool("quick", false, "with -guards: ask only the likeliest tests, and leave what none of them notices for later")
	only    = flag.String("only", "", "with -guards: what the file, the object or the text of a guard has, as a regular expression")
	workers = flag.Int("workers", 2, "with -guards: how many are taken out at a time")
)

// round is a part of the tests of a store, which are asked one round after the
// other whether they notice.
type round struct {
	run    string
	likely bool
}

// patience is how long nothing may be heard of tests before they hang. The
// slowest takes a few seconds, on a machine that does nothing else.
const patience = 90 * time.Second

// plans are the tests of how SQLite finds something: each takes no time.
const plans = "TestHistoryCosts|TestWhatIsLookedAt"

// own are the tests of a store alone that are there for what a word in the name of a
// file or an object stands for.
var own = []struct{ word, tests string }{
	{"doctor", "Doctor|AHealthy|ADatabaseWithout|ARoleThat|ASchemaThatWas|ATransactionThatNobody|Settings|TheHead|TheRoles|" +
		"WhatGrows|WhatIsMissing|WhatIsNoConcern|WhatSomebody|WhatCannotBe|WhatIsWrong|WhatTheDoctor|WhereNobody|WhoBlocks|WhoPins|AWriterThat|Damage|PlacesThat"},
	{"evict", "Evicted"},
	{"sweep|bury|condemn", "ABurial|Swe[ep]|BehindAn|CutShort|Tidied|Restored"},
	{"fire|schedule", "Occurrence|Schedule"},
	{"rebase|restore", "Restored|Rebase"},
	{"1_tables", "CanInstall"},
	{"filter", "Marker|IsClaimed|States|Counts"},
	{"migrate|upgrade|meta|step", "Upgrad|Old|Step|Install|Start|Open|Pooler|InTheWay"},
	{"undecided|decide", "Undecided|Failure"},
	{"marks.go", "Statistics|Marks"},
	{"finish|record|complete|unfinished", "Outcome|Completion|ACommit"},
	{"cancel|settle$|mark|promote|unclaimed|counts", "Cancelled|Marker|SQLCancels"},
	{"lease", "Lease|TestNoTrapIsOpen/.*/lease"},
	{"retain|remove|erase|delet|turn|operate|again", "Delet|Marked|Marker|RunAgain|Operated|Age|Forgotten|Sums|Statistics|SQL|Restored|TestNoTrapIsOpen/.*/(retention|claim|deletes|Engines pay)"},
	{"key|idempotency|fingerprint", "Keys?"},
	{"enqueue|copy|polic|class|kind|domain|urn|tag|now|people|lane_of|priority|retry", "SQL|Batch|Polic|Enqueue|Tags|Arguments|Running|TheView|IsClaimed"},
	{"sum|stat|minute|figure", "Sums|Statistics|Counts|Figures|Group|Cost|Claimed|IsMarked|Swe[ep]|TestNoTrapIsOpen/.*/(sum|Minutes)"},
	{"notif|ring|sleep|listen", "Rung|Ring|Sleep|Listen"},
	{"beat|roster|join|engine", "Beat|Engine|Closed|Roster|Deletion|TestNoTrapIsOpen/.*/beat"},
	{"store.go|work.go", "Session|Pooler"},
	{"tx.go", "Transaction|Database|Tx"},
	{"jobs|job_|state", "Arguments|Marker|States|SQL|Tags|Undecided"},
}

// likely are the groups of the conformance suite that are there for what a word
// in the name of a file or an object stands for.
var likely = []struct{ word, groups string }{
	{"marks.go|figures", "Stats|Analytics"},
	{"audit.go", "Waiting|Cancel|Look|Bury"},
	{"filter.go", "Analytics|Schedules|Fire"},
	{"tx.go", "Tx"},
	{"claim|frontier|sight|look|barrier|lanes|unseen|steps|fresh|entries", "Claim|Look|Late|Beside|Hold|Interrupted|Finish|Pause"},
	{"fetch|entry", "CancelClaimed|Claim|Successor|Enqueue|Record"},
	{"fence|engine|roster|beat|condemn|bury|sweep|join|leave|evict", "Roster|Bury|BuryRace|Claim|Finish|Hold|Lease|Delete"},
	{"finish|record|unfinished|complete|execution", "Finish|Record|Successor|Complete|Poison|Bury|CancelClaimed|Roster|Delete"},
	{"promote|waiting|due", "Waiting|Successor|Cancel|Retry|Expiry|Listen"},
	{"cancel|settle|why|mark|late", "Cancel|CancelClaimed|CancelRace|Waiting"},
	{"undecided|decide", "Undecided"},
	{"key|idempotency|fingerprint", "Keys|Age|Enqueue|Now"},
	{"schedule|fire|occurrence", "Schedules|Fire|Delete"},
	{"lease|acquire|resign|depose|holder|under", "Lease|Roster|Retain"},
	{"retain|age_of|step|remove|erase|delete|turn|gone", "Retain|Age|Delete|Keys|Stats"},
	{"again|recover|retry|operate", "Retry|OperateRace|Delete"},
	{"sum|stat|minute", "Stats|Retain|Delete"},
	{"queue|pause|resume", "Pause|Look"},
	{"metric", "Metrics"},
	{"change", "Change"},
	{"errorgroup", "Errors"},
	{"analytic|unclaimed|attempts|due_by", "Analytics|Stats"},
	{"job|filter|inspect|outcome_name|poll", "Inspect|Cancel|Correlation|Faulty|Analytics|Delete|Fire"},
	{"enqueue|copy|polic|class|kind|domain|urn|tag|now", "Enqueue|Tx|Keys|Now|Roster"},
	{"migrate|meta|upgrade|version|schema|there", "Migrate"},
	{"doctor", "Doctor"},
	{"store.go|work.go", "Roster|Bury"},
}

// blind are tests that compare texts with what is written down. They notice
// each change of the schema, and so prove nothing.
const blind = "TestTheManifest|TestEachTrapHasItsMend|TestInstallingAndUpgradingLeadToTheSameSchema"

// blindToSchema are those that find a schema which is not the one written down.
const blindToSchema = "|TestAHealthy|TestASchemaThatWasSound|TestWhatIsMissingIsMade|TestWhatSomebodyChanged|TestWhatCannotBeLookedAt|TestConformance/.*/Doctor|TestConformance/.*/plain/Doctor"

func (g Guard) store() string { s, _, _ := strings.Cut(g.File, "/"); return s }

// rank puts first what decides about jobs, and last what only tells of them.
func (g Guard) rank() int {
	for rank, words := range []string{"doctor", "analytics|figures|errorgroups|filter|inspect|audit|metrics|stats", "1_tables|/0001.sql|people"} {
		if regexp.MustCompile(words).MatchString(g.File) {
			return 3 - rank
		}
	}
	return 0
}

func (g Guard) skips() string {
	if strings.HasSuffix(g.File, ".sql") {
		return blind + blindToSchema
	}
	return blind
}

// rounds are the tests to ask about a guard, the likeliest first.
func (g Guard) rounds() []round {
	suite := "TestConformance/"
	if g.store() == "postgres" {
		suite = "TestConformance/.*/plain/"
	}
	about := filepath.Base(g.File) + " " + g.In
	var first []string
	for _, l := range likely {
		if regexp.MustCompile("(?i)" + l.word).MatchString(about) {
			first = append(first, l.groups)
			if len(first) == 2 {
				break
			}
		}
	}
	var rounds []round
	if strings.Contains(g.File, "/schema/") && (strings.HasPrefix(g.Text, "check") || strings.HasPrefix(g.Text, "primary")) {
		rounds = append(rounds, round{"TestImpossibleStatesCannotBeStored", true})
	}
	if strings.HasPrefix(g.Text, "unique") {
		rounds = append(rounds, round{"TestNoOccurrenceIsStoredTwice", true})
	}
	if len(first) > 0 {
		rounds = append(rounds, round{suite + "^(" + strings.Join(first, "|") + ")$", true})
	}
	for _, o := range own {
		if regexp.MustCompile("(?i)" + o.word).MatchString(about) {
			rounds = append(rounds, round{o.tests, true})
			break
		}
	}
	if g.store() == "postgres" {
		return append(rounds, round{"TestNoTrapIsOpen", false}, round{suite, false}, round{"Test[^N]", false})
	}
	return append(rounds, round{plans, true}, round{"Test", false})
}

// outcome is what came of a run.
type outcome struct {
	failed string // the first test that did, empty for none
	hung   bool
	output string
}

// ask runs tests without a guard until one fails, or nothing is heard of them.
func ask(ctx context.Context, store, without, run, skip string) (outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(buildDir, store), "-test.v=test2json", "-test.short", "-test.failfast", "-test.count=1", "-test.parallel=4",
		"-test.timeout=0", "-test.run="+run, "-test.skip="+skip)
	cmd.Dir = filepath.Join("../..", store)
	cmd.Env = append(os.Environ(), variable+"="+without)
	cmd.WaitDelay = 5 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return outcome{}, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	silence := time.AfterFunc(patience, cancel)
	defer silence.Stop()
	var o outcome
	var b strings.Builder
	var running []string // in the order in which they went on last
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		silence.Reset(patience)
		line := lines.Text()
		if b.Len() < 1<<20 {
			b.WriteString(line + "\n")
		}
		// The form that tells of each part as it ends marks such lines by a byte.
		verb, name, ok := strings.Cut(strings.Trim(line, " \x16"), " Test")
		name, _, _ = strings.Cut("Test"+strings.TrimSpace(name), " (")
		switch strings.TrimSpace(verb) {
		case "=== RUN", "=== CONT":
			running = append(running, name)
		case "--- PASS:", "--- SKIP:", "=== PAUSE":
			running = slices.DeleteFunc(running, func(n string) bool { return n == name })
		case "--- FAIL:":
			if ok && o.failed == "" {
				o.failed = name
				cancel()
			}
		}
	}
	o.hung = ctx.Err() != nil && o.failed == ""
	err = cmd.Wait()
	o.output = b.String()
	if err != nil && o.failed == "" && len(running) > 0 {
		o.failed = running[len(running)-1]
	}
	return o, nil
}

// rewritten is how go test shows the name of a part.
func rewritten(name string) string { return strings.ReplaceAll(name, " ", "_") }

// names are the tests of each store by how they are shown.
func names(t *testing.T, store string) map[string]string {
	t.Helper()
	known, err := pages.TestsOf("../..", store)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]string{}
	for name := range known.Funcs {
		by[name] = name
	}
	for name := range known.Words {
		by[rewritten(name)] = name
	}
	return by
}

// shown is a test as the page names it: with "*" for parts that are made up as it runs.
func shown(by map[string]string, test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		name, ok := by[part]
		if !ok {
			name = "*"
		}
		parts[i] = name
	}
	return strings.Join(parts, "/")
}

// pattern is what go test calls a test of the page.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		if parts[i] = ".*"; part != "*" {
			parts[i] = "^" + regexp.QuoteMeta(rewritten(part)) + "$"
		}
	}
	return strings.Join(parts, "/")
}

// refused tells of a failure that shows only that the clause is needed for the
// statement to be one at all.
var refused = regexp.MustCompile(`SQLSTATE 42(P10|601|703|P01|803|804|883)|SQL logic error`)

// kill finds a test that fails without a guard.
func kill(t *testing.T, by map[string]string, g Guard, known string) (killer, note string) {
	without := filepath.Join(t.TempDir(), "without.json")
	if err := g.Without("../..", without); err != nil {
		t.Error(err)
		return "", ""
	}
	rounds := g.rounds()
	if known != "" {
		rounds = append([]round{{pattern(known), true}}, rounds...)
	}
	skip := g.skips()
	for _, r := range rounds {
		if *quick && !r.likely {
			return unlikely, ""
		}
		for range 3 {
			o, err := ask(t.Context(), g.store(), without, r.run, skip)
			if err != nil {
				t.Error(err)
				return "", ""
			}
			if o.failed == "" {
				break
			}
			killer := shown(by, o.failed)
			again, err := ask(t.Context(), g.store(), without, pattern(killer), "")
			if err != nil {
				t.Error(err)
				return "", ""
			}
			if again.failed != "" {
				if refused.MatchString(again.output) {
					note = "refused"
				}
				if again.hung {
					note = "hangs"
				}
				return killer, note
			}
			t.Logf("not again: %s", o.failed)
			skip += "|" + pattern(shown(by, o.failed))
		}
	}
	return survives, ""
}

var buildDir string

// TestEachGuardHasItsKiller takes guards out and writes down who noticed.
func TestEachGuardHasItsKiller(t *testing.T) {
	if !*runNew {
		t.Skip("not run: this takes long (make guards)")
	}
	buildDir = t.TempDir()
	wanted := regexp.MustCompile(*only)
	p := readPage(t)
	var all []Guard
	by := map[string]map[string]string{}
	for _, store := range stores {
		guards, err := Find("../..", store)
		if err == nil {
			err = Build("../..", store, guards, filepath.Join(buildDir, store))
		}
		if err != nil {
			t.Fatal(err)
		}
		by[store] = names(t, store)
		all = append(all, guards...)
	}
	todo := make(chan Guard)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range *workers {
		wg.Go(func() {
			for g := range todo {
				began := time.Now()
				mu.Lock()
				known := p[g.Key()]
				mu.Unlock()
				if known, _, _ = strings.Cut(known, " ("); !strings.HasPrefix(known, "Test") {
					known = ""
				}
				killer, note := kill(t, by[g.store()], g, known)
				fmt.Printf("%s %5.1fs  %s\n        %s %s\n", time.Now().Format(time.TimeOnly), time.Since(began).Seconds(), g.Key(), killer, note)
				mu.Lock()
				if note != "" {
					killer += " (" + note + ")"
				}
				if killer != "" {
					p[g.Key()] = killer
					writePage(t, all, p)
				}
				mu.Unlock()
			}
		})
	}
	for _, g := range slices.SortedStableFunc(slices.Values(all), func(a, b Guard) int { return a.rank() - b.rank() }) {
		known := p[g.Key()]
		switch {
		case exemptFor(g) != "" || len(g.edits) == 0 || !wanted.MatchString(g.Key()):
		case strings.HasPrefix(known, "Test") && !*runAll, known == unlikely && *quick:
		default:
			todo <- g
		}
	}
	close(todo)
	wg.Wait()
	writePage(t, all, p)
}
