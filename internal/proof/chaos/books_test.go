//go:build unix

package chaos_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

// number reads one number.
func (w *world) number(text string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.pool.QueryRow(w.t.Context(), text, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// outcomes are those that jobs had last.
func (w *world) outcomes() map[int64]string {
	w.t.Helper()
	ledger, err := w.ground.Audit(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	all, last := map[int64]string{}, map[stint.ID]store.Position{}
	for _, x := range ledger.Executions {
		if x.Pos >= last[x.Job] {
			all[int64(x.Job)], last[x.Job] = x.Outcome.String(), x.Pos
		}
	}
	return all
}

// history is what the processes have written down so far.
func (w *world) history() history {
	w.t.Helper()
	h, err := check.Read(w.Dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return history{h}
}

type history struct{ *check.History }

// runsOn are the runs of jobs on a worker: the first of each.
func (h history) runsOn(worker string) map[int64]check.Run {
	all := map[int64]check.Run{}
	for _, r := range h.Runs {
		if _, twice := all[r.Job]; !twice && h.Processes[r.Process].Name == worker {
			all[r.Job] = r
		}
	}
	return all
}

// took tells when a worker closed its books, 0 if it did not, and when another
// began the first of its jobs. None of them may have come to an end before.
func (h history) took(t *testing.T, from, to string, ids []stint.ID) (closed, again check.Instant) {
	t.Helper()
	for _, p := range h.Processes {
		if p.Name == from {
			closed = p.Stopped
		}
	}
	before, after := h.runsOn(from), h.runsOn(to)
	for _, id := range ids {
		first, second := before[int64(id)], after[int64(id)]
		if first.Start == 0 || first.How != check.Open || second.How != check.OK {
			t.Errorf("job %d ended %q on %s and %q on %s", id, first.How, from, second.How, to)
		}
		if again == 0 || second.Start < again {
			again = second.Start
		}
	}
	return closed, again
}

// jobsOf reads ids of jobs.
func (w *world) jobsOf(text string, args ...any) []int64 {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), text, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// split parts jobs by whether they have begun on a worker.
func (w *world) split(ids []int64, worker string) (begun, unbegun []int64) {
	w.t.Helper()
	h, err := check.Read(filepath.Join(w.Dir, worker+".log"))
	if err != nil {
		w.t.Fatal(err)
	}
	runs := history{h}.runsOn(worker)
	for _, id := range ids {
		if _, yes := runs[id]; yes {
			begun = append(begun, id)
		} else {
			unbegun = append(unbegun, id)
		}
	}
	return begun, unbegun
}

// unclaimed is how much of the log nobody has taken.
const unclaimed = `select (select count(*) from stint.entries) - (select coalesce(sum(cardinality(positions)), 0) from stint.claims)`

// catch freezes a worker at a moment when it has claimed n jobs or more that
// it has not begun, with a line of others behind, and returns how many. It has
// not many in hand that have ended, and wait for a flush. Should the line melt
// away meanwhile, there is more, and twice as much where it melts too fast.
func (w *world) catch(p *chaos.Process, n, line int) int {
	w.t.Helper()
	token := w.Await(p.Name, event.EventJoined, 1, time.Minute).Engine
	enough, made := 2*line, 0
	for range 100 {
		p.Freeze()
		time.Sleep(20 * time.Millisecond) // what it has sent takes effect
		held := w.jobsOf(`
			select coalesce(e.job, e.pos) from stint.claims c, unnest(c.positions) as p(pos), stint.entries e
			where c.engine = $1 and e.pos = p.pos and not exists (select from stint.executions x where x.pos = p.pos)`, token)
		left := w.number(unclaimed)
		if len(held) >= n && left >= line {
			if begun, unbegun := w.split(held, p.Name); len(unbegun) >= n && len(begun) < 5*n {
				return len(unbegun)
			}
		}
		if left < line {
			enough = min(2*enough, 50*line)
		}
		if more := enough - left; more > 0 {
			w.enqueue("more", made, more, quick) // while it is frozen, or it may be faster than we are
			made += more
		}
		p.Thaw()
		time.Sleep(100 * time.Millisecond) // it finds its pace again
	}
	w.t.Fatalf("%s never held %d jobs that it had not begun", p.Name, n)
	return 0
}

// apart judges, and wants no overlap at all, explained or not.
func (w *world) apart() {
	w.t.Helper()
	report := w.Judge(w.t.Context(), w.ground)
	if len(report.Overlaps) > 0 {
		w.t.Errorf("pairs of runs overlapped: %v", report.Overlaps)
	}
	w.t.Log(report)
}

// ended compares the attempts of jobs, by worker, outcome and number.
func (w *world) ended(ids []stint.ID, want string) {
	w.t.Helper()
	for _, id := range ids {
		job, err := w.store.Job(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		var all []string
		for _, x := range job.Attempts {
			all = append(all, fmt.Sprintf("%s %s at attempt %d", x.Instance, x.Outcome, x.Attempt))
		}
		if got := strings.Join(all, ", "); got != want {
			w.t.Errorf("job %d: %s; want %s", id, got, want)
		}
	}
}
