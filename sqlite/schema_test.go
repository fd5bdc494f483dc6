package sqlite

import (
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

// U36: an impossible state cannot be stored, whoever tries.
func TestImpossibleStatesCannotBeStored(t *testing.T) {
	s := open(t, Memory)
	const (
		entry = `insert into stint_entries (lane, created, job, body, attempt, priority, losses, suspect, queue, kind, args, metadata, tags) values `
		bound = `insert into stint_entries (lane, created, due, start_by, attempt, priority, losses, suspect, queue, kind, args) values `
		exec  = `insert into stint_executions (pos, attempt, nonce, engine, slot, started, finished, outcome, final, result) values `
		wait  = `insert into stint_waiting (job, due, body, why, attempt, priority, losses, suspect, queue, kind) values `
		odd   = `insert into stint_waiting (job, due, undecided, faulty, body, why, attempt, priority, losses, suspect, queue, kind) values `
		mark  = `insert into stint_cancellations (job, at, why) values `
		claim = `insert into stint_claims (lane, n, nonce, engine, serial, start, frontier, taken) values `
	)
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', null, null)`, true},
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', null, null, null)`, false},   // no arguments
		{entry + `(1, 1, 9, 9, 1, 0, 0, 0, 'q', 'k', '{}', null, null)`, false},         // arguments twice
		{entry + `(1, 1, null, 9, 1, 0, 0, 0, 'q', 'k', null, null, null)`, false},      // contents elsewhere, job here
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{', null, null)`, false},    // no JSON
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', '[]', null)`, false},   // metadata is an object
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', null, '{}')`, false},   // tags are a list
		{entry + `(1, 1, null, null, 0, 0, 0, 0, 'q', 'k', '{}', null, null)`, false},   // attempt 0
		{entry + `(1, 1, null, null, 1, 101, 0, 0, 'q', 'k', '{}', null, null)`, false}, // priority
		{entry + `(-2, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', null, null)`, false},  // lane
		{entry + `('x', 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', null, null)`, false}, // type
		{bound + `(-1, 1, 5, 5, 1, 0, 0, 0, 'q', 'k', '{}')`, true},
		{bound + `(-1, 1, 5, 4, 1, 0, 0, 0, 'q', 'k', '{}')`, false}, // to begin before it is due
		{exec + `(1, 1, 1, 1, 1, 5, 6, 1, 1, null)`, true},
		{exec + `(1, 1, 1, 1, 1, 5, 6, 1, 1, null)`, false}, // twice
		{exec + `(2, 1, 1, 1, 1, 5, 6, 1, 0, null)`, false}, // completed is final
		{exec + `(2, 1, 1, 1, 1, 5, 6, 6, 0, null)`, false}, // cancelled is final
		{exec + `(2, 1, 1, 1, 1, 5, 6, 7, 0, null)`, false}, // expired is final
		{exec + `(2, 1, 1, 1, 1, 5, 6, 3, 1, null)`, false}, // snoozed never is
		{exec + `(2, 1, 1, 1, 1, 5, 6, 4, 1, null)`, false}, // returned never is
		{exec + `(2, 1, 1, 1, 1, 5, 6, 8, 1, null)`, false}, // no such outcome
		{exec + `(2, 1, 1, 1, 1, 5, 6, 1, 2, null)`, false}, // final is yes or no
		{exec + `(2, 1, 1, 1, 1, 7, 6, 1, 1, null)`, false}, // ended before it began
		{exec + `(2, 1, 1, 1, 1, 5, 6, 1, 1, 'x')`, false},  // no JSON
		{exec + `(2, 1, 1, 1, 1, 5, 6, 2, 0, '[1]'), (3, 1, 1, 1, 0, 5, 5, 2, 1, null), (4, 1, 1, 1, 0, 5, 5, 5, 0, null)`, true},
		{wait + `(1, 5, 1, 'scheduled', 1, 0, 0, 0, 'q', 'k')`, true},
		{wait + `(1, 5, 1, 'retrying', 1, 0, 0, 0, 'q', 'k')`, false}, // waits twice
		{wait + `(2, 5, 1, 'bored', 1, 0, 0, 0, 'q', 'k')`, false},
		{odd + `(5, null, 'f', 1, 1, 'retrying', 2, 0, 0, 0, 'q', 'k'), (6, 5, null, 1, 1, 'scheduled', 2, 0, 0, 0, 'q', 'k')`, true},
		{odd + `(7, null, null, null, 1, 'retrying', 2, 0, 0, 0, 'q', 'k')`, false}, // no date, and nobody to decide it
		{odd + `(7, 5, 'f', null, 1, 'retrying', 2, 0, 0, 0, 'q', 'k')`, false},     // a date, and somebody to decide it
		{odd + `(7, null, 'f', null, 1, 'scheduled', 2, 0, 0, 0, 'q', 'k')`, false}, // undecided without a failure
		{odd + `(7, null, '', null, 1, 'retrying', 2, 0, 0, 0, 'q', 'k')`, false},   // by nobody
		{odd + `(7, 5, null, 0, 1, 'retrying', 2, 0, 0, 0, 'q', 'k')`, false},       // faulty is said or not
		{mark + `(1, 5, null), (2, 5, 'because')`, true},
		{mark + `(1, 6, 'again')`, false},
		{mark + `(3, 5, '')`, false},
		{claim + `(1, 1, 1, 1, 1, 0, 5, 5)`, true},
		{claim + `(1, 1, 1, 1, 1, 5, 6, 1)`, false},  // a stale frontier
		{claim + `(1, 2, 1, 1, 1, 5, 5, 0)`, false},  // an empty claim
		{claim + `(1, 2, 1, 1, 1, 5, 7, 3)`, false},  // more than there is room for
		{claim + `(-1, 1, 1, 1, 1, 0, 5, 5)`, false}, // of the lane that nobody claims
	} {
		err := s.write(t.Context(), func(conn *conn) (bool, error) { return false, conn.db.Exec(c.text) })
		if (err == nil) != c.ok {
			t.Errorf("%s\n  gives %v", c.text, err)
		}
	}
}

func TestHistoryCostsLooksAndPagesNothing(t *testing.T) {
	s := open(t, Memory)
	state := func(all ...stint.State) []stint.State { return all }
	for _, f := range []stint.Filter{
		{}, {Before: 10}, {States: state(stint.Completed)}, {States: state(stint.Available)}, {States: state(stint.Running)},
		{States: state(stint.Failed)}, {States: state(stint.Cancelled)}, {States: state(stint.Failed, stint.Cancelled, stint.Retrying)},
		{States: state(stint.Retrying)}, {States: state(stint.Scheduled, stint.Retrying), Source: "s"}, {Tag: "t"}, {URN: "u"}, {Kind: "k", Queue: "q"},
		{Correlation: "5"}, {Correlation: "5", States: state(stint.Scheduled)}, {Correlation: "5", States: state(stint.Completed), Source: "s"},
		{Faulty: true}, {Faulty: true, States: state(stint.Retrying)}, {Faulty: true, States: state(stint.Retrying), Source: "s"},
		{Outcome: stint.OutcomeLost}, {Class: "c", Kind: "k"}, {Error: "e", States: state(stint.Completed)},
		{Source: "s", Finished: stint.Span{From: time.Now()}},
	} {
		text, args := jobsQuery(jobColumns, f)
		plan := plan(t, s, text, args...)
		if strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("the list for %+v sorts all that there is:\n%s", f, plan)
		}
		rare := len(f.States) > 0 && f.States[0] != stint.Completed || f.Tag+f.URN+f.Correlation+f.Class+f.Error != "" || f.Outcome != 0 || f.Faulty
		if rare && strings.Contains(plan, "SCAN e\n") {
			t.Errorf("the list for %+v reads the whole log:\n%s", f, plan)
		}
	}
	for name, text := range map[string]string{"look": lookSQL, "held": heldSQL, "fetch": fetchSQL, "next": nextDueSQL, "due": dueSQL, "job": jobSQL,
		"state": stateSQL, "final": finalSQL, "wait": waitOfSQL, "never": neverReadySQL, "cancelling": cancellingSQL,
		"contents": contentsSQL, "recovered": recoveredSQL, "schedules": dueSchedulesSQL, "tags": eraseTagsSQL, "holder": holderSQL, "old keys": oldKeysSQL} {
		for line := range strings.Lines(plan(t, s, text)) {
			if strings.HasPrefix(line, "SCAN") && !strings.HasPrefix(line, "SCAN l") && !strings.HasPrefix(line, "SCAN json_each") &&
				!strings.HasPrefix(line, "SCAN b\n") && !strings.HasPrefix(line, "SCAN r") && !strings.HasPrefix(line, "SCAN (subquery") {
				t.Errorf("%s reads a whole table: %s", name, line)
			}
		}
	}
}

// plan is how SQLite answers a query, a step on each line.
func plan(t *testing.T, s *Store, text string, args ...any) string {
	t.Helper()
	var steps strings.Builder
	err := s.read(t.Context(), func(c *conn) error {
		return c.query("explain query plan "+text, args, func(q *stmt) error {
			steps.WriteString(q.ColumnText(3) + "\n")
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps.String()
}
