//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/stint-go/stint/internal/proof/check"
)

// AccountsVariable names the file to which each such run adds a line of JSON, an
// [Account]. Where it is not set, nothing is written.
const AccountsVariable = "STINT_CHAOS_ACCOUNTS"

// Account is what a run came to, mostly as [Fleet.Judge] found it.
type Account struct {
	Test     string    `json:"test"`
	Database string    `json:"database"` // with the version of its server
	At       time.Time `json:"at"`       // when it was judged
	Seconds  float64   `json:"seconds"`  // from the beginning of its fleet

	Jobs    int                `json:"jobs"`
	Runs    int                `json:"runs"` // of handlers
	Reruns  map[string]int     `json:"reruns,omitempty"`
	Overlap map[check.Does]int `json:"overlapped,omitempty"` // runs, explained by this that was done to their processes

	Lost    int `json:"lost"`
	Doubled int `json:"doubled"`
	Broken  int `json:"broken"` // violations of any rule, these among them

	Undone check.Undone `json:"undone,omitzero"` // what a server lost that another one took the place of

	Recoveries []float64 `json:"recoveries,omitempty"` // seconds from a fault's end, or from a death, until work went on

	Seed   uint64         `json:"seed,omitempty"`   // 0 where nothing came from one
	Commit string         `json:"commit,omitempty"` // of the source
	Made   map[string]int `json:"made,omitempty"`   // in a mixed run, how often each trouble was made
	Failed bool           `json:"failed,omitempty"` // the test did, by a violation or by anything else
}

// Recovered notes how long it took until work went on.
func (f *Fleet) Recovered(after time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recoveries = append(f.recoveries, after.Seconds())
}

// Account adds a line for what a run came to, when the test is over and has said all
// that it has against it. What every run has is filled in.
func (f *Fleet) Account(ctx context.Context, g *Ground, a Account) {
	f.t.Helper()
	path := os.Getenv(AccountsVariable)
	if path == "" {
		return
	}
	a.Test, a.Seed, a.At, a.Seconds, a.Commit = f.t.Name(), f.Seed, time.Now().UTC(), time.Since(f.began).Seconds(), f.commit
	f.mu.Lock()
	a.Recoveries, a.Made = slices.Clone(f.recoveries), f.made
	f.mu.Unlock()
	var err error
	if a.Database, err = g.version(ctx); err != nil {
		f.t.Error(err)
	}
	f.t.Cleanup(func() {
		a.Failed = f.t.Failed()
		if err := a.keep(path); err != nil {
			f.t.Error(err)
		}
	})
}

// judged is the account of what was judged.
func judged(r *check.Report) Account {
	a := Account{
		Jobs: r.Jobs + r.Deleted, Runs: r.Runs, Reruns: maps.Clone(r.Reruns), Overlap: r.Overlaps, Lost: r.Lost, Doubled: r.Doubled, Undone: r.Undone,
	}
	for _, n := range r.Broken {
		a.Broken += n
	}
	return a
}

// commit is what stands in the working tree, for accounts. It is asked for at the
// beginning: a long run outlives the state that it is of.
func commit() string {
	if os.Getenv(AccountsVariable) == "" {
		return ""
	}
	head, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(head))
}

// keep adds the account to a file.
func (a *Account) keep(path string) error {
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}
