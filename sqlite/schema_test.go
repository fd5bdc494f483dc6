package sqlite

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// impossible says of tables what a row is that may be stored, after the name of the
// table, and what may not be done to it. Where it is empty the table has its row.
var impossible = []struct {
	table, row string
	wrong      []string
}{
	{"stint_meta", "", []string{`one = 2`}},
	{"stint_policies", `(id, body) values (1, '{}')`, []string{`body = '{'`}},
	{"stint_entries", `(pos, lane, created, attempt, priority, losses, suspect, queue, kind, args) values (5, 1, 1, 1, 0, 0, 0, 'q', 'k', '{}')`, []string{
		`args = null`,           // no arguments
		`job = 2, body = 2`,     // arguments twice
		`args = null, body = 2`, // contents elsewhere, job here
		`args = '{'`,            // no JSON
		`lane = -2`, `lane = 'x'`, `attempt = 0`, `priority = -101`, `priority = 101`, `losses = -1`, `suspect = -1`, `queue = ''`, `kind = ''`,
		`timeout = 0`, `max_losses = -1`, `faulty = 0`, `tags = '{'`, `tags = '{}'`, `metadata = '['`, `metadata = '[]'`,
		`urn = ''`, `source = ''`, `correlation = ''`, `limits = ''`, `recovered = pos`, `job = pos`,
		`due = 5, start_by = 4`, // to begin before it is due
		`schedule = ''`, `schedule = '', nth = 1`, `nth = 1`, `schedule = 's'`, `occurrence = 5`,
	}},
	{"stint_entries", `(pos, lane, created, job, body, due, start_by, attempt, priority, losses, suspect, queue, kind, faulty)
		values (5, -1, 1, 3, 2, 5, 5, 1, -100, 0, 0, 'q', 'k', 1)`, nil},
	{"stint_job_tags", `(tag, job) values ('t', 1)`, nil},
	{"stint_idempotency", `(key, job, fingerprint, expires) values ('k', 1, 'f', 5)`, []string{`key = ''`}},
	{"stint_claims", `(lane, n, nonce, engine, serial, start, frontier, taken) values (1, 1, 1, 1, 1, 0, 5, 5)`, []string{
		`lane = -1`, // that nobody claims
		`n = 0`, `start = -1`,
		`taken = 0`, // an empty claim
		`taken = 6`, // more than there is room for
	}},
	{"stint_executions", `(pos, attempt, nonce, engine, slot, started, finished, outcome, final, result) values (5, 1, 1, 1, 0, 5, 5, 2, 0, '[1]')`, []string{
		`attempt = 0`, `slot = -1`, `outcome = 0`, `outcome = 9, final = 1`, `final = 2`, `result = 'x'`, `error = 'x'`, `job = pos`, `finished = 4`,
		`outcome = 1`,            // completed is final
		`outcome = 6`,            // cancelled is
		`outcome = 7`,            // expired is
		`outcome = 8`,            // skipped is
		`outcome = 3, final = 1`, // snoozed never is
		`outcome = 4, final = 1`, // returned never is
	}},
	{"stint_executions", `(pos, attempt, nonce, engine, slot, started, finished, outcome, final)
		values (1, 1, 1, 1, 0, 5, 5, 1, 1), (2, 1, 1, 1, 0, 5, 5, 2, 1), (3, 1, 1, 1, 0, 5, 5, 3, 0), (4, 1, 1, 1, 0, 5, 5, 4, 0),
		       (5, 1, 1, 1, 0, 5, 5, 5, 1), (6, 1, 1, 1, 0, 5, 5, 6, 1), (7, 1, 1, 1, 0, 5, 5, 7, 1), (8, 1, 1, 1, 0, 5, 5, 8, 1)`, nil},
	{"stint_waiting", `(job, due, body, why, attempt, priority, losses, suspect, queue, kind) values (1, 5, 1, 'scheduled', 1, 0, 0, 0, 'q', 'k')`, []string{
		`why = 'bored'`, `attempt = 0`, `priority = -101`, `priority = 101`, `losses = -1`, `suspect = -1`, `queue = ''`, `kind = ''`, `limits = ''`, `faulty = 0`,
		`due = null`, // no date, and nobody to decide it
	}},
	{"stint_waiting", `(job, due, undecided, faulty, body, why, attempt, priority, losses, suspect, queue, kind)
		values (1, null, 'f', 1, 1, 'retrying', 1, 0, 0, 0, 'q', 'k')`, []string{
		`due = 5`,           // a date, and somebody to decide it
		`why = 'scheduled'`, // undecided without a failure
		`undecided = ''`,    // by nobody
	}},
	{"stint_waiting", `(job, body, why, attempt, priority, losses, suspect, queue, kind, watch, verdict) values (1, 1, 'blocked', 1, 0, 0, 0, 'q', 'k', 5, 0)`, []string{
		`due = 5`, `verdict = 4`,
		`verdict = null`,    // waits for nothing
		`why = 'scheduled'`, // and for jobs
	}},
	{"stint_steps", `(job, name, pos, began, ended, result) values (1, 's', 5, 5, 5, 'null')`, []string{`name = ''`, `result = '{'`}},
	{"stint_notes", `(job, after) values (1, 0)`, nil},
	{"stint_flows", `(flow) values (1)`, nil},
	{"stint_nodes", `(flow, name, job) values (1, 'a', 2)`, []string{`name = ''`}},
	{"stint_needs", `(child, parent, wants) values (3, 2, 1)`, []string{`wants = 0`, `wants = 4`}},
	{"stint_cancellations", `(job, at, why) values (1, 5, 'because')`, []string{`why = ''`}},
	{"stint_queues", `(queue, paused) values ('q', 5)`, []string{`queue = ''`, `queue = '*'`, `by = ''`, `why = ''`}},
	{"stint_deletions", `(engine, serial, at) values (1, 1, 5)`, nil},
	{"stint_engines", `(token, locked) values (1, 0), (2, 1)`, []string{`locked = 2`}},
	{"stint_engine_history", `(token, instance, host, boot_id, pid, pid_started, version, queues, kinds, slots, ttl, joined)
		values (1, 'i', 'h', 'b', 1, 1, 'v', '[]', '[]', 1, 1, 5)`, []string{`queues = '['`, `kinds = '['`, `ended = 6`, `why = 'because'`}},
	{"stint_beats", `(token, beat, low, running) values (1, 5, 1, '[]')`, []string{`running = '['`, `drain = 2`}},
	{"stint_kinds", `(name, queue, priority, timeout, tags, retry, declared) values ('k', 'q', 0, 0, '[]', '{}', 5)`, []string{
		`name = ''`, `priority = -101`, `priority = 101`, `timeout = -1`, `start_within = -1`, `max_losses = -1`, `tags = '['`, `limits = '['`, `retry = '{'`,
	}},
	{"stint_schedules", `(name, recurrence, zone, job, overlap, missed, after, created, declared)
		values ('s', '@daily', 'UTC', '{}', 0, 'one', 5, 5, 5)`, []string{`name = ''`, `job = '{'`, `overlap = 2`}},
	{"stint_leases", `(name) values ('l')`, []string{
		`name = ''`, `deposed_by = ''`, `deposed_why = ''`,
		`engine = 1, renewed = 1, expires = 2`,               // held since never
		`engine = 1, acquired = 1, renewed = 2, expires = 2`, // over when it was asked for
	}},
	{"stint_leases", `(name, engine, acquired, renewed, expires) values ('l', 1, 1, 1, 2)`, nil},
	{"stint_limits", `(name, declared, declared_at) values ('l', '10', 5)`, []string{
		`name = ''`, `declared = ''`, `declared_at = null`, `set_at = 5`,
		`declared = null, declared_at = null`,  // no rule
		`set_by = 'me'`, `set_why = 'because'`, // of what nobody set
		`fixed = '5'`,                           // set never
		`fixed = '', set_at = 5`,                // to nothing
		`fixed = '5', set_at = 5, set_by = ''`,  // by nobody
		`fixed = '5', set_at = 5, set_why = ''`, // for nothing
	}},
	{"stint_limits", `(name, fixed, set_at, set_by, set_why) values ('l', '10', 5, 'me', 'because')`, nil},
	{"stint_limit_pauses", `(gate, until, trial, by, why) values ('g', 1, 0, 'me', 'because')`, []string{`gate = ''`, `trial = 2`, `by = ''`, `why = ''`}},
	{"stint_permits", `(gate, n, used) values ('g', 1, '[]')`, []string{`gate = ''`, `n = 0`, `used = '['`, `used = '{}'`}},
	{"stint_reruns", `(gate, job) values ('g', 1)`, []string{`gate = ''`, `failed = 0`}},
	{"stint_metrics", `(instance, since, engine, at, figures) values ('i', 5, 1, 5, '{}')`, []string{`figures = '{'`}},
	{"stint_changes", `(n, at, way, operation) values (1, 5, 'api', 'pause')`, []string{
		`by = ''`, `role = ''`, `way = ''`, `operation = ''`, `subject = ''`, `details = '{'`, `details = '[]'`, `ended = 6, problem = ''`,
		`problem = 'bad'`, // of what has not ended
	}},
	{"stint_changes", `(n, at, way, operation, ended, problem) values (1, 5, 'api', 'pause', 6, 'bad')`, nil},
	{"stint_error_groups", `(key, state, at, by, why) values ('0123456789abcdef', 'muted', 5, 'me', 'because')`, []string{
		`key = ''`, `key = '0123456789abcde'`, `key = '0123456789ABCDEF'`, `state = 'open'`, `by = ''`, `why = ''`,
	}},
	{"stint_saved_filters", `(name, query, at, by) values ('n', 'kind=k', 5, 'me')`, []string{`name = ''`, `query = ''`, `by = ''`}},
	{"stint_stats", `(minutes, start, kind, queue, outcome, n, ran, total, waited) values (1, 0, 'k', 'q', 1, 1, 1, 1, 1)`, []string{`minutes = 2`}},
	{"stint_stats", `(minutes, start, kind, queue, outcome, n, ran, total, waited) values (60, 0, 'k', 'q', 1, 1, 1, 1, 1)`, nil},
	{"stint_marks", `(n, at, lanes, open) values (99, 5, '{}', '[]')`, []string{`lanes = '{'`, `open = '['`}},
}

// U36: an impossible state cannot be stored, whoever tries, nor what is there twice.
func TestImpossibleStatesCannotBeStored(t *testing.T) {
	s := open(t, Memory)
	done := errors.New("nothing of it is to stay")
	for _, c := range impossible {
		err := s.write(t.Context(), func(conn *conn) (bool, error) {
			if c.row != "" {
				if err := conn.db.Exec("insert into " + c.table + " " + c.row); err != nil {
					return false, err
				}
			}
			refused := func(text string) {
				if err := conn.db.Exec(text); !errors.Is(err, sqlite3.CONSTRAINT) {
					t.Errorf("%s %s\n%s\n  gives %v", c.table, c.row, text, err)
				}
			}
			for _, wrong := range c.wrong {
				refused("update " + c.table + " set " + wrong)
			}
			refused("insert into " + c.table + " select * from " + c.table)
			return false, done
		})
		if !errors.Is(err, done) {
			t.Errorf("%s %s\n  gives %v", c.table, c.row, err)
		}
	}
}

// The last line: no occurrence of a schedule has two jobs.
func TestNoOccurrenceIsStoredTwice(t *testing.T) {
	s := open(t, Memory)
	const text = `insert into stint_entries (lane, created, attempt, priority, losses, suspect, queue, kind, args, schedule, nth, occurrence)
		values (1, 1, 1, 0, 0, 0, 'q', 'k', '{}', 's', `
	for _, c := range []struct {
		values string
		ok     bool
	}{{`1, 7)`, true}, {`2, 7)`, false}, {`2, 8)`, true}, {`3, null)`, true}, {`4, null)`, true}} {
		err := s.write(t.Context(), func(conn *conn) (bool, error) { return true, conn.db.Exec(text + c.values) })
		if (err == nil) != c.ok || err != nil && !errors.Is(err, sqlite3.CONSTRAINT) {
			t.Errorf("%s%s\n  gives %v", text, c.values, err)
		}
	}
}

func TestHistoryCostsLooksAndPagesNothing(t *testing.T) {
	s := open(t, Memory)
	state := func(all ...stint.State) []stint.State { return all }
	for _, f := range []store.Filter{
		{}, {Before: 10}, {States: state(stint.Completed)}, {States: state(stint.Available)}, {States: state(stint.Running)},
		{States: state(stint.Failed)}, {States: state(stint.Cancelled)}, {States: state(stint.Failed, stint.Cancelled, stint.Retrying)},
		{States: state(stint.Retrying)}, {States: state(stint.Scheduled, stint.Retrying), Source: "s"}, {Tag: "t"}, {URN: "u"}, {URN: "u*"}, {URN: "*"}, {Kind: "k", Queue: "q"},
		{Correlation: "5"}, {Correlation: "5", States: state(stint.Scheduled)}, {Correlation: "5", States: state(stint.Completed), Source: "s"},
		{Faulty: true}, {Faulty: true, States: state(stint.Retrying)}, {Faulty: true, States: state(stint.Retrying), Source: "s"},
		{Attempts: 2}, {Longer: store.LongAttempt}, {Outcome: stint.OutcomeLost}, {Class: "c", Kind: "k"}, {Error: "e", States: state(stint.Completed)},
		{Source: "s", Finished: store.TimeRange{From: time.Now()}},
	} {
		text, args := jobsQuery(jobColumns, f)
		plan := plan(t, s, text, args...)
		if strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("the list for %+v sorts all that there is:\n%s", f, plan)
		}
		rare := len(f.States) > 0 && f.States[0] != stint.Completed || f.Tag+f.URN+f.Correlation+f.Class+f.Error != "" || f.Outcome != 0 || f.Faulty || f.Attempts > 0 || f.Longer > 0
		for _, whole := range []string{"SCAN e\n", "SCAN stint_entries\n", "SCAN stint_executions\n", "SCAN stint_waiting\n"} {
			waits := whole == "SCAN stint_waiting\n" && len(f.States) > 0
			if rare && !waits && strings.Contains(plan, whole) {
				t.Errorf("the list for %+v reads the whole log:\n%s", f, plan)
			}
		}
	}
	for name, text := range map[string]string{"look": lookSQL, "held": heldSQL, "fetch": fetchSQL, "next": nextDueSQL, "due": dueSQL, "job": jobSQL,
		"state": stateSQL, "final": finalSQL, "wait": waitOfSQL, "tried": triedSQL, "cancelling": cancellingSQL,
		"contents": contentsSQL, "recovered": recoveredSQL, "schedules": dueSchedulesSQL, "tags": eraseTagsSQL, "holder": holderSQL, "old keys": oldKeysSQL, "errors": newestErrorsSQL,
		"step": stepSQL, "steps": stepsSQL, "parents": parentsSQL, "members": membersSQL, "watchers": watchersSQL, "blocked": blockedSQL, "needed": neededSQL,
		"retain": retainPageSQL} {
		for line := range strings.Lines(plan(t, s, text)) {
			if strings.HasPrefix(line, "SCAN") && !strings.HasPrefix(line, "SCAN l") && !strings.HasPrefix(line, "SCAN json_each") &&
				!strings.HasPrefix(line, "SCAN b\n") && !strings.HasPrefix(line, "SCAN r") && !strings.HasPrefix(line, "SCAN (subquery") {
				t.Errorf("%s reads a whole table: %s", name, line)
			}
		}
	}
}

// What is behind a frontier, in an interval of claims that are not known to be
// done, or went wrong is found by both ends of where it is in an index.
func TestWhatIsLookedAtBeginsAndEndsInAnIndex(t *testing.T) {
	s := open(t, Memory)
	const behind, within = "stint_entries_lane (lane=? AND rowid>?)", "stint_entries_lane (lane=? AND rowid>? AND rowid<?)"
	const claims, rare = "stint_claims_engine (engine=? AND serial>?)", "stint_executions_rare (outcome=? AND final=?)"
	again, _ := jobsQuery(jobColumns, store.Filter{Attempts: 1})
	for text, steps := range map[string][]string{
		mayBe[stint.Available]: {behind}, mayBe[stint.Running]: {claims, within}, mayBe[stint.Failed]: {rare}, mayBe[stint.Cancelled]: {rare},
		holdsSQL: {claims, within}, openSQL: {claims, within}, attemptsSQL: {within}, again: {rare},
	} {
		plan := plan(t, s, text)
		for _, step := range steps {
			if !strings.Contains(plan, step) {
				t.Errorf("%s\nis not found by %s:\n%s", text, step, plan)
			}
		}
	}
}

// plan is how SQLite answers a query, a step on each line. Values that are not given are null.
func plan(t *testing.T, s *Store, text string, args ...any) string {
	t.Helper()
	var steps strings.Builder
	err := s.read(t.Context(), func(c *conn) error {
		text := "explain query plan " + text
		q, err := c.prepare(text)
		if err != nil {
			return err
		}
		return c.query(text, append(args, make([]any, q.BindCount()-len(args))...), func(q *stmt) error {
			steps.WriteString(q.ColumnText(3) + "\n")
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps.String()
}
