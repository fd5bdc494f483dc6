package sqlite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// ways are those in which files are damaged. Each takes a whole file.
var ways = map[string]func(dice *rand.Rand, b []byte) []byte{
	"cut off": func(dice *rand.Rand, b []byte) []byte { return b[:1+dice.IntN(len(b)-1)] },
	"cut off between two pages": func(dice *rand.Rand, b []byte) []byte {
		return b[:pageSize*(1+dice.IntN(len(b)/pageSize-1))]
	},
	"a page of zeros":       func(dice *rand.Rand, b []byte) []byte { clear(aPage(dice, b)); return b },
	"a page of garbage":     func(dice *rand.Rand, b []byte) []byte { return scribbled(dice, b, aPage(dice, b)) },
	misplaced:               func(dice *rand.Rand, b []byte) []byte { copy(aPage(dice, b), aPage(dice, b)); return b },
	"a header of garbage":   func(dice *rand.Rand, b []byte) []byte { return scribbled(dice, b, b[:100]) },
	"a header of zeros":     func(_ *rand.Rand, b []byte) []byte { clear(b[:100]); return b },
	"bits of the header":    func(dice *rand.Rand, b []byte) []byte { return flipped(dice, b, b[:100]) },
	"bits of a page's head": func(dice *rand.Rand, b []byte) []byte { return flipped(dice, b, aPage(dice, b)[:16]) },
	"bits anywhere":         func(dice *rand.Rand, b []byte) []byte { return flipped(dice, b, b) },
	"something else":        func(dice *rand.Rand, b []byte) []byte { return bytes.Repeat([]byte("no database\n"), len(b)/12) },
}

const (
	misplaced = "a page in another's place"
	pageSize  = 4096
)

func aPage(dice *rand.Rand, b []byte) []byte {
	at := pageSize * dice.IntN(len(b)/pageSize)
	return b[at : at+pageSize]
}

func scribbled(dice *rand.Rand, b, part []byte) []byte {
	for i := range part {
		part[i] = byte(dice.UintN(256))
	}
	return b
}

func flipped(dice *rand.Rand, b, part []byte) []byte {
	for range 1 + dice.IntN(8) {
		part[dice.IntN(len(part))] ^= 1 << dice.IntN(8)
	}
	return b
}

// Whatever is wrong with a file, somebody says so: opening it, using it, or the
// doctor. SQLite keeps no sums of what is stored, so nobody tells that the bits of
// an argument are others, or always that a disk wrote a page to another's place.
func TestADamagedFileIsToldAndNeverTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	for way, damage := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			told := map[string]int{}
			for seed := range setting(t, "STINT_DAMAGES", 6) {
				dice := rand.New(rand.NewPCG(uint64(seed), 5))
				path := used(t)
				b, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, damage(dice, b), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				told[use(t, way, fmt.Sprintf("seed %d", seed), path)]++
			}
			t.Log(told)
		})
	}
}

const usedJobs = 200

// used makes a file with jobs, every other of which is completed.
func used(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, someJobs(usedJobs))
	w := storetest.Join(t, s, "noop")
	w.Complete(w.Claim(store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID, usedJobs/2)...)
	w.Leave()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// use does everything that is done with a file, and says who noticed.
func use(t *testing.T, way, when, path string) string {
	t.Helper()
	clear := func(doing string, err error) string {
		for _, says := range []string{"the database is damaged", "it is not an SQLite database", "stint doctor", "are not there", "positions and"} {
			if strings.Contains(err.Error(), says) {
				return doing
			}
		}
		t.Errorf("%s: to %s gives an error that does not say what is wrong: %v", when, doing, err)
		return doing
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		return clear("open", err)
	}
	defer s.Close()
	ctx := t.Context()
	w := storetest.NewWorker(t, s, "noop")
	steps := []struct {
		name string
		do   func() error
	}{
		{"read counts", func() error { _, err := s.Counts(ctx); return err }},
		{"read jobs", func() error { _, err := s.Jobs(ctx, store.Filter{Limit: 1000}); return err }},
		{"enqueue", func() error { _, err := s.Enqueue(ctx, stint.Tx{}, someJobs(3)); return err }},
		{"join", func() error { return w.TryJoin(ctx) }},
		{"claim", func() error { _, err := w.TryClaimAll(ctx, 50); return err }},
		{"audit", func() error { _, err := s.Audit(ctx); return err }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return clear(step.name, err)
		}
	}
	if signs, err := s.Examine(ctx, report.Options{Deep: true}); err != nil {
		return clear("examine", err)
	} else if slices.ContainsFunc(signs.Findings, func(f report.Finding) bool { return f.Code == "file_damaged" }) {
		return "the doctor"
	}
	if way == misplaced {
		return "nobody: nothing in a page says which one it is"
	}
	counts, err := s.Counts(ctx)
	if err != nil || counts[stint.Completed] != usedJobs/2 || counts[stint.Running] != usedJobs/2+3 {
		t.Errorf("%s: nobody says that it is damaged, and the counts are %v, error %v", when, counts, err)
	}
	return "nobody: nothing is lost"
}

// The driver takes the place of the error in the schema for one in the statement,
// and panics.
func TestASchemaThatDoesNotParseIsDamageAndNoPanic(t *testing.T) {
	t.Parallel()
	path := used(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"union all": "union, al", "left join": "felt join", "(json_valid(body))": "(json_faild(body))"} {
		changed := bytes.ReplaceAll(b, []byte(from), []byte(to))
		if bytes.Equal(changed, b) {
			t.Fatalf("the schema has no %q", from)
		}
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Logf("%q is told to those who %s", to, use(t, "", to, path))
	}
}

// A WAL has sums: what is damaged is taken for its end. So the last commits are
// gone, and nobody can tell; but nothing else is, and nothing is there in part.
func TestADamagedWALEndsWhereTheDamageIs(t *testing.T) {
	t.Parallel()
	const size, batches = 10, 40
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	for range batches {
		enqueue(t, s, someJobs(size))
	}
	for seed := range 20 {
		dice := rand.New(rand.NewPCG(uint64(seed), 6))
		other := filepath.Join(t.TempDir(), "jobs.db")
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(path + suffix)
			if err == nil && suffix != "" {
				b = [](func() []byte){
					func() []byte { return flipped(dice, b, b) },
					func() []byte { clear(aPage(dice, b)); return b },
					func() []byte { return b[:dice.IntN(len(b))] },
				}[dice.IntN(3)]()
			}
			if err == nil {
				err = os.WriteFile(other+suffix, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		d, err := Open(t.Context(), other)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sound(t, d, fmt.Sprintf("seed %d", seed))
		storetest.Verify(t, d)
		if counts, err := d.Counts(t.Context()); err != nil || counts[stint.Available]%size != 0 {
			t.Errorf("seed %d: the counts are %v, error %v", seed, counts, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
