//go:build unix

package chaos_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/words"
)

var update = flag.Bool("update", false, "write the tables of docs/reliability.md")

// The page and what it is made of: a line for each run that was judged.
const (
	reliability = "../../../docs/reliability.md"
	accounts    = "../../../docs/reliability/accounts.jsonl"

	tableBegins = "<!-- runs: make reliability-page writes what follows -->\n"
	tableEnds   = "<!-- end of runs -->\n"
)

func TestThePageOfReliabilityTellsTheRunsThatWereKept(t *testing.T) {
	text, err := os.ReadFile(reliability)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	got, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", reliability)
	}
	switch want := tableOf(readAccounts(t, accounts)); {
	case got == want:
	case *update:
		if err := os.WriteFile(reliability, []byte(before+tableBegins+want+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s is not that of %s (make reliability-page writes it); it should be\n%s", reliability, accounts, want)
	}
}

func readAccounts(t *testing.T, path string) (all []chaos.Account) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var a chaos.Account
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v in %q", path, err, lines.Text())
		}
		all = append(all, a)
	}
	return all
}

// tableOf sums up runs by their test and database.
func tableOf(all []chaos.Account) string {
	type key struct{ test, database string }
	sums := map[key]*chaos.Account{}
	times, failed := map[key]int{}, map[key]int{}
	for _, a := range all {
		test, _, _ := strings.Cut(a.Test, "/")
		k := key{test, a.Database}
		if sums[k] == nil {
			sums[k] = &chaos.Account{Reruns: map[string]int{}, Overlap: map[check.Does]int{}}
		}
		times[k]++
		if a.Failed {
			failed[k]++
		}
		s := sums[k]
		s.Seconds += a.Seconds
		s.Jobs += a.Jobs
		s.Runs += a.Runs
		for does, n := range a.Overlap {
			s.Overlap[does] += n
		}
		s.Undone.Jobs += a.Undone.Jobs
		s.Undone.Outcomes += a.Undone.Outcomes
		s.Lost += a.Lost
		s.Doubled += a.Doubled
		s.Broken += a.Broken
		s.Recoveries = append(s.Recoveries, a.Recoveries...)
		for why, n := range a.Reruns {
			s.Reruns[why] += n
		}
	}
	var b strings.Builder
	b.WriteString("| what was done | on | runs, time | jobs | handlers ran | lost | doubled | other violations | ran again, explained | overlapped, explained | work went on after: p50, longest |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	keys := slices.SortedFunc(maps.Keys(sums), func(x, y key) int { return cmp.Or(cmp.Compare(x.test, y.test), cmp.Compare(x.database, y.database)) })
	for _, k := range keys {
		s, n := sums[k], fmt.Sprint(times[k])
		if failed[k] > 0 {
			n += fmt.Sprintf(" (%d failed)", failed[k])
		}
		fmt.Fprintf(&b, "| %s | %s | %s, %v | %s | %s | %s | %d | %d | %s | %s | %s |\n", sentence(k.test), k.database, n, seconds(s.Seconds).Round(time.Second),
			words.Count(s.Jobs), words.Count(s.Runs), lost(s), s.Doubled, s.Broken-s.Lost-s.Doubled, reasons(s.Reruns), reasons(s.Overlap), recovery(s.Recoveries))
	}
	return b.String()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// lost tells what is lost, and apart from it what a server lost itself.
func lost(a *chaos.Account) string {
	if a.Undone == (check.Undone{}) {
		return fmt.Sprint(a.Lost)
	}
	return fmt.Sprintf("%d; by the server %d, and %d outcomes", a.Lost, a.Undone.Jobs, a.Undone.Outcomes)
}

// reasons tells how many had which reason.
func reasons[R ~string](all map[R]int) string {
	var list []string
	for _, why := range slices.Sorted(maps.Keys(all)) {
		if all[why] > 0 {
			list = append(list, fmt.Sprintf("%s %s", why, words.Count(all[why])))
		}
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// recovery tells the median and the longest of several times.
func recovery(all []float64) string {
	if len(all) == 0 {
		return "–"
	}
	slices.Sort(all)
	return fmt.Sprintf("%v, %v of %d", seconds(all[len(all)/2]).Round(10*time.Millisecond), seconds(all[len(all)-1]).Round(10*time.Millisecond), len(all))
}

// sentence writes the name of a test as words.
func sentence(test string) string {
	var b strings.Builder
	name := []rune(strings.TrimPrefix(test, "Test"))
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func TestTheTableSumsUpTheRunsOfATest(t *testing.T) {
	got := tableOf([]chaos.Account{
		{Test: "TestAServerIsAway/for_long", Database: "PostgreSQL 18.4", Seconds: 60, Jobs: 1000, Runs: 1100, Reruns: map[string]int{"crash": 7}, Overlap: map[check.Does]int{check.Freezes: 1}, Recoveries: []float64{3, 1}},
		{Test: "TestAServerIsAway", Database: "PostgreSQL 18.4", Seconds: 1.6, Jobs: 500, Runs: 500, Lost: 1, Doubled: 2, Broken: 4, Recoveries: []float64{.25}, Failed: true},
		{Test: "TestAServerIsAway", Database: "PostgreSQL 13.23", Seconds: 1, Jobs: 5, Runs: 5, Undone: check.Undone{Jobs: 3, Claims: 2, Outcomes: 1}},
	})
	want := "| A server is away | PostgreSQL 13.23 | 1, 1s | 5 | 5 | 0; by the server 3, and 1 outcomes | 0 | 0 | none | none | – |\n" +
		"| A server is away | PostgreSQL 18.4 | 2 (1 failed), 1m2s | 1,500 | 1,600 | 1 | 2 | 1 | crash 7 | frozen 1 | 1s, 3s of 3 |\n"
	if _, rows, _ := strings.Cut(got, "---|\n"); rows != want {
		t.Errorf("got\n%s\nwant\n%s", rows, want)
	}
}
