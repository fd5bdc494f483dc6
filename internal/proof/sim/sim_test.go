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
	var seeds []Seed
	if text := os.Getenv("STINT_SIM_SEED"); text != "" {
		for range setting(t, "STINT_SIM_REPEAT", 10) {
			seeds = append(seeds, parse(t, text))
		}
	} else {
		seeds = remembered(t)
		usual := uint64(50)
		if testing.Short() || raceDetector {
			usual = 6
		}
		from := setting(t, "STINT_SIM_FROM", 1)
		for i := range setting(t, "STINT_SIM_SEEDS", usual) {
			seeds = append(seeds, Seed{N: from + i})
		}
	}
	employ(t, seeds)
}

// work is what a worker does: it runs the seeds that it is given.
func work(t *testing.T) {
	lines := bufio.NewScanner(os.Stdin)
	failures := 0
	for lines.Scan() && failures < 3 {
		seed := parse(t, lines.Text())
		fmt.Printf("%s%v\n", beginning, seed)
		v := Run(t, seed, NoBug)
		if len(v.Violations) == 0 {
			continue
		}
		failures++
		file := filepath.Join(os.TempDir(), fmt.Sprintf("stint-sim-%v.txt", seed))
		if err := os.WriteFile(file, []byte(v.Trace()), 0o644); err != nil {
			t.Error(err)
		}
		t.Errorf("seed %v:\n  %s\n%v\n%sreplay it with: make sim SEED=%v\neverything that happened is in %s",
			seed, strings.Join(v.Violations, "\n  "), v.Report, v.Story(), seed, file)
	}
}

// remembered are the seeds that found a bug.
func remembered(t *testing.T) []Seed {
	t.Helper()
	text, err := os.ReadFile("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	var seeds []Seed
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			seeds = append(seeds, parse(t, line))
		}
	}
	return seeds
}

// parse reads a seed at the beginning of a line.
func parse(t *testing.T, line string) Seed {
	t.Helper()
	word, _, _ := strings.Cut(line, " ")
	digits, _, _ := strings.Cut(word, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		t.Fatalf("%q is no seed: %v", line, err)
	}
	for age := range ages {
		if s := (Seed{N: n, Age: age}); s.String() == word {
			return s
		}
	}
	t.Fatalf("%q is no seed", line)
	return Seed{}
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
