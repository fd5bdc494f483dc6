package sim

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSeeds runs the seeds that found a bug once and as many new ones as
// STINT_SIM_SEEDS says, from STINT_SIM_FROM on; or, again and again, the one
// that STINT_SIM_SEED names.
func TestSeeds(t *testing.T) {
	if os.Getenv(workerVariable) != "" {
		work(t)
		return
	}
	var seeds []uint64
	if seed := setting(t, "STINT_SIM_SEED", 0); seed != 0 {
		for range setting(t, "STINT_SIM_REPEAT", 10) {
			seeds = append(seeds, seed)
		}
	} else {
		seeds = remembered(t)
		usual := uint64(50)
		if testing.Short() || raceDetector {
			usual = 6
		}
		from := setting(t, "STINT_SIM_FROM", 1)
		for i := range setting(t, "STINT_SIM_SEEDS", usual) {
			seeds = append(seeds, from+i)
		}
	}
	employ(t, seeds)
}

// work is what a worker does: it runs the seeds that it is given.
func work(t *testing.T) {
	lines := bufio.NewScanner(os.Stdin)
	failures := 0
	for lines.Scan() && failures < 3 {
		seed, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%d\n", beginning, seed)
		v := Run(t, seed, NoBug)
		if len(v.Violations) == 0 {
			continue
		}
		failures++
		file := filepath.Join(os.TempDir(), fmt.Sprintf("stint-sim-%d.txt", seed))
		if err := os.WriteFile(file, []byte(v.Trace()), 0o644); err != nil {
			t.Error(err)
		}
		t.Errorf("seed %d:\n  %s\n%v\n%sreplay it with: make sim SEED=%d\neverything that happened is in %s",
			seed, strings.Join(v.Violations, "\n  "), v.Report, v.Story(), seed, file)
	}
}

// remembered are the seeds that found a bug.
func remembered(t *testing.T) []uint64 {
	t.Helper()
	text, err := os.ReadFile("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	var seeds []uint64
	for line := range strings.Lines(string(text)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || word == "#" {
			continue
		}
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatalf("testdata/seeds.txt: %v", err)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// setting reads a variable of the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
