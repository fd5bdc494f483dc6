//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// Drain waits until every job is final, and fails the test where that takes too
// long: what was done so far can be judged all the same.
func (f *Fleet) Drain(ctx context.Context, store store.Inspector, within time.Duration) {
	f.t.Helper()
	for until := time.Now().Add(pace.Of(within)); ; time.Sleep(100 * time.Millisecond) {
		counts, err := store.Counts(ctx)
		if err == nil && open(counts) == 0 {
			return
		}
		if time.Now().After(until) {
			f.t.Errorf("after %v the states are %v, %v", within, counts, err)
			return
		}
	}
}

// Standstill is the longest time between two instants in which no run of a handler
// ended.
func (f *Fleet) Standstill(from, to check.Instant) time.Duration {
	f.t.Helper()
	history, err := check.Read(f.Dir)
	if err != nil {
		f.t.Fatal(err)
	}
	ends := []check.Instant{from, to}
	for _, r := range history.Runs {
		if from < r.End && r.End < to {
			ends = append(ends, r.End)
		}
	}
	slices.Sort(ends)
	longest := time.Duration(0)
	for i := range ends[1:] {
		longest = max(longest, ends[i+1].Sub(ends[i]))
	}
	return longest
}

// checkEffects makes sure that a job with Tx has exactly one effect when it
// completed, and none otherwise.
func checkEffects(ctx context.Context, g *Ground, gone map[int64]bool) error {
	var (
		id, n int64
		state string
		done  = map[int64]int64{}
		wrong []int64
	)
	err := g.each(ctx, `select job, count(*) from chaos_effects group by job`, []any{&id, &n}, func() error {
		done[id] = n
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the effects: %w", err)
	}
	told := `select id, state from ` + g.table("jobs") + ` where cast(args->>'tx' as text) in ('true', '1')` // as either database writes it
	err = g.each(ctx, told, []any{&id, &state}, func() error {
		if completed := state == check.StateCompleted; completed && done[id] != 1 || !completed && done[id] > 0 {
			wrong = append(wrong, id)
		}
		delete(done, id)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the jobs with effects: %w", err)
	}
	for id := range done {
		if !gone[id] || done[id] > 1 {
			wrong = append(wrong, id)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d jobs that complete in a transaction have not as many effects as they should: %v", len(wrong), wrong[:min(len(wrong), 20)])
	}
	return nil
}

// Judge compares the history with the database and fails the test at any
// violation. Every process must have ended, or idle, and every job be final.
func (f *Fleet) Judge(ctx context.Context, g *Ground) *check.Report {
	f.t.Helper()
	return f.judge(ctx, g, check.Options{Drained: true})
}

// JudgeAmid does the same while there is work left that nobody does.
func (f *Fleet) JudgeAmid(ctx context.Context, g *Ground) *check.Report {
	f.t.Helper()
	return f.judge(ctx, g, check.Options{})
}

func (f *Fleet) judge(ctx context.Context, g *Ground, options check.Options) *check.Report {
	f.t.Helper()
	all := f.read(ctx, g)
	history, err := check.Read(f.Dir)
	if err != nil {
		f.t.Fatal(err)
	}
	options.Clean, options.Slack = f.left(), f.Slack
	if f.Slack > 0 {
		options.Burials = f.burials()
	}
	f.mu.Lock()
	options.Disturbances, options.Deleted, options.Failover = slices.Clone(f.done), f.deleted, f.failover
	f.mu.Unlock()
	options.Disturbances = append(options.Disturbances, f.fences(all, options.Burials)...)
	gone := make(map[int64]bool, len(options.Deleted))
	for _, d := range options.Deleted {
		gone[d.Job] = true
	}
	report := check.Compare(history, all, options)
	if err := report.Err(); err != nil {
		f.t.Errorf("%v\n%v", err, report)
		for _, v := range report.Violations {
			f.tell(v.Job, history, all)
		}
	}
	if err := checkEffects(ctx, g, gone); err != nil {
		f.t.Error(err)
	}
	f.checkCancelled(history, all)
	f.Account(ctx, g, judged(report))
	return report
}

// burials tells when engines were buried, by the clock of this machine, of those whose
// buriers lived to tell.
func (f *Fleet) burials() map[int64]time.Time {
	f.t.Helper()
	all := map[int64]time.Time{}
	for _, e := range f.said(event.EventBurial) {
		all[int64(e.Other)] = e.At
	}
	return all
}

// said are the events of a type of all workers that were ever started.
func (f *Fleet) said(t event.EventType) (all []Event) {
	f.mu.Lock()
	names := slices.Clone(f.workers)
	f.mu.Unlock()
	for _, name := range names {
		all = append(all, eventsOf(f.Events(name), t)...)
	}
	return all
}

// facts are what a database says of every job, with what the workload said.
func facts(ctx context.Context, g *Ground) (*check.Facts, error) {
	ledger, err := g.Audit(ctx)
	if err != nil {
		return nil, err
	}
	all := storetest.Facts(ledger)
	return all, errors.Join(addTold(ctx, g, all), addSteps(ctx, g, all))
}

// left lists the engines that left in good order.
func (f *Fleet) left() []int64 {
	var all []int64
	for _, e := range f.said(event.EventLeft) {
		all = append(all, int64(e.Engine))
	}
	return all
}

// tell says all that both accounts know of a job.
func (f *Fleet) tell(job int64, history *check.History, facts *check.Facts) {
	f.t.Helper()
	holder := map[int64]int64{}
	for _, c := range facts.Claims {
		for _, pos := range c.Positions {
			holder[pos] = c.Engine
		}
	}
	for _, e := range facts.Entries {
		if e.Job == job {
			f.t.Logf("job %d: entry %d, attempt %d, claimed by %d, who was buried at %v", job, e.Pos, e.Attempt, holder[e.Pos], facts.Buried[holder[e.Pos]])
		}
	}
	for _, x := range facts.Executions {
		if x.Job == job {
			f.t.Logf("job %d: execution %+v", job, x)
		}
	}
	for _, r := range history.Runs {
		if r.Job == job {
			f.t.Logf("job %d: run on %s %+v", job, history.Processes[r.Process].Name, r)
		}
	}
}

// checkCancelled makes sure that what was cancelled was asked for, and that what
// was said to be cancelled stayed so and did not begin again.
func (f *Fleet) checkCancelled(history *check.History, facts *check.Facts) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range facts.Executions {
		_, asked := f.cancelled[x.Job]
		asked = asked || strings.HasPrefix(x.Reason, "its flow ") || strings.HasPrefix(x.Reason, "needs job ")
		if x.Outcome == check.OutcomeCancelled && !asked {
			f.t.Errorf("job %d was cancelled, and nobody asked for that", x.Job)
		}
	}
	for _, j := range facts.Jobs {
		if f.cancelled[j.ID] != 0 && j.State != check.StateCancelled {
			f.t.Errorf("job %d was said to be cancelled, and is %s", j.ID, j.State)
		}
	}
	for _, r := range history.Runs {
		if at := f.cancelled[r.Job]; at != 0 && r.Start > at {
			f.t.Errorf("job %d was said to be cancelled, and began %v later on %s", r.Job, r.Start.Sub(at), history.Processes[r.Process].Name)
		}
	}
}

// addTold reads what the workload said of each job: its name in the history from
// its arguments, what it may come to, and which one it does again.
func addTold(ctx context.Context, g *Ground, facts *check.Facts) error {
	type told struct {
		key           string
		grant, losses int
		recovers      int64
		tx            bool
		poison, limit string
	}
	all := map[int64]told{}
	var (
		id int64
		t  told
	)
	text := `select id, coalesce(args->>'key', ''), coalesce(cast(args->>'grant' as integer), 0), coalesce(max_losses, 3), coalesce(recovered, 0),
		coalesce(cast(args->>'tx' as text), '') in ('true', '1'), coalesce(args->>'poison', ''), coalesce(args->>'limit', '') from ` + g.table("jobs") + ` where not is_flow`
	err := g.each(ctx, text, []any{&id, &t.key, &t.grant, &t.losses, &t.recovers, &t.tx, &t.poison, &t.limit}, func() error {
		all[id] = t
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what jobs were told: %w", err)
	}
	for i := range facts.Jobs {
		j := &facts.Jobs[i]
		t, told := all[j.ID]
		if !told {
			continue // nobody runs a flow
		}
		j.Key, j.Recovers, j.LossesMax, j.Once = t.key, t.recovers, max(1, t.losses), t.losses == 0
		j.CompletesItself, j.Lingers = t.tx, t.poison == lingers || t.poison == spins
		if name, _, _ := strings.Cut(t.limit, "="); name != "" {
			j.AtOnce = map[string]int{t.limit: limits[name]}
		}
		switch {
		case t.grant == 0:
			j.ChargedMax = retries + 1
		case t.grant > 0:
			j.ChargedMax = t.grant
		}
	}
	return nil
}

// addSteps reads what the steps of the workload came to.
func addSteps(ctx context.Context, g *Ground, facts *check.Facts) error {
	var s check.Step
	err := g.each(ctx, `select job, name, cast(result as text) from `+g.table("steps")+` where result is not null`, []any{&s.Job, &s.Name, &s.Value}, func() error {
		facts.Steps = append(facts.Steps, s)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the steps: %w", err)
	}
	return nil
}

// Burials counts the engines that others buried, and fails the test for each
// that did not have it coming: its process had ended, or stood still, or the
// engine had fenced itself before, or the answer to its joining was lost and
// nobody ever was that engine. Where the server's clock is wrong it is asked of those
// whose buriers lived to tell when that was.
func (f *Fleet) Burials(ctx context.Context, g *Ground) int {
	f.t.Helper()
	ended := `(extract(epoch from ended) * 1000000)::bigint`
	if g.Pool == nil {
		ended = `ended`
	}
	var (
		all, token, micros int64
		instance           string
	)
	known, untold := map[int64]time.Time{}, 0
	if f.Slack > 0 {
		known = f.burials()
	}
	text := `select token, instance, ` + ended + ` from ` + g.table("engine_history") + ` where ended is not null and why <> 'left'`
	err := g.each(ctx, text, []any{&token, &instance, &micros}, func() error {
		all++
		at := time.UnixMicro(micros)
		if f.Slack > 0 {
			var told bool
			if at, told = known[token]; !told {
				untold++
				return nil
			}
		}
		if !f.wasHarmed(instance, at) && !f.fenced(instance, store.EngineID(token), at) {
			f.t.Errorf("%s was buried as engine %d at %v, but it lived and had not fenced itself", instance, token, at)
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(fmt.Errorf("read the burials: %w", err))
	}
	if untold > 0 {
		f.t.Logf("of %d of %d burials only the server tells when they were, and its clock was wrong", untold, all)
	}
	return int(all)
}

// fences are the engines that said that they fenced themselves, before they were buried: they
// got no answer in time, since the server or their own process got no processor. One that hears
// of its burial says it later, and is not among them.
func (f *Fleet) fences(facts *check.Facts, burials map[int64]time.Time) (all []check.Disturbance) {
	now, wall := check.Now(), time.Now()
	for _, e := range f.said(event.EventBuried) {
		token := int64(e.Engine)
		buried, ok := burials[token]
		if f.Slack == 0 {
			buried, ok = facts.Buried[token]
		}
		if ok && e.At.Before(buried) {
			at := now.Add(e.At.Sub(wall))
			all = append(all, check.Disturbance{Does: check.CutsOff, Engine: token, From: at, To: at})
		}
	}
	return all
}

// fenced tells whether an engine had ended its session before a moment, or had
// never begun it.
func (f *Fleet) fenced(process string, engine store.EngineID, before time.Time) bool {
	began := false
	for _, e := range f.Events(process) {
		switch {
		case e.Engine != engine:
		case e.Type == event.EventJoined:
			began = true
		case e.Type == event.EventBuried:
			return e.At.Before(before)
		}
	}
	return !began
}

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
