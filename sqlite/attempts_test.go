package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// What people read of attempts by SQL is what a program reads of them, and the
// attempts of one job are found by a key.
func TestTheViewOfAttemptsSaysWhatJobsShowSays(t *testing.T) {
	s := open(t, Memory)
	client := stint.NewClient(s)
	var jobs []stint.ID
	enqueue := func(opts ...stint.Option) {
		t.Helper()
		id, err := client.Enqueue(t.Context(), stint.KindInfo{Name: "k"}.Job(nil, opts...))
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, id)
	}
	w := storetest.Join(t, s, "k")
	enqueue(stint.Queue("mail"))
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, w.One())
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("refused")}, w.One())
	enqueue()
	w.Finish(store.Result{Outcome: stint.OutcomeCompleted, Result: []byte(`{"sent":1}`)}, w.One())
	enqueue()
	w.Heartbeat(w.One().Pos)
	w.Release()
	w.Leave() // lost
	v := storetest.Join(t, s, "k")
	v.Complete(v.One())
	enqueue(stint.Delay(time.Hour))
	if _, err := s.Cancel(t.Context(), jobs[len(jobs)-1:], "no longer wanted"); err != nil {
		t.Fatal(err)
	}
	v.Leave()

	var says, want strings.Builder
	var plan []string
	err := s.read(t.Context(), func(c *conn) error {
		err := c.query(`select job, attempt, kind, queue, outcome, final, ifnull(error ->> 'message', ''), ifnull(result, ''), ifnull(instance, ''), started is not null,
			finished, ifnull(took = finished - started and waited >= 0, 1) from stint_attempts order by job, pos`, nil, func(q *stmt) error {
			for i := range 12 {
				fmt.Fprint(&says, q.ColumnText(i), " ")
			}
			says.WriteByte('\n')
			return nil
		})
		if err != nil {
			return err
		}
		return c.query(`explain query plan select * from stint_attempts where job = 1`, nil, func(q *stmt) error {
			plan = append(plan, q.ColumnText(3))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	for _, id := range jobs {
		j, err := s.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range j.Attempts {
			var message string
			if x.Error != nil {
				message = x.Error.Message
			}
			fmt.Fprintln(&want, id, x.Attempt, j.Kind, j.Queue, x.Outcome, flag(x.Final), message, string(x.Result), x.Instance, flag(x.Slot > 0), x.Finished.UnixMicro(), "1 ")
		}
	}
	if got := says.String(); got != want.String() {
		t.Errorf("the view says\n%s\njobs show says\n%s", got, &want)
	}
	for _, outcome := range []string{"completed", "failed", "lost", "returned", "cancelled"} {
		if !strings.Contains(says.String(), outcome) {
			t.Errorf("none of the attempts is %s", outcome)
		}
	}
	if text := strings.Join(plan, "\n"); strings.Contains(text, "SCAN x") || !strings.Contains(text, "SEARCH x") {
		t.Errorf("the attempts of one job are found by\n%s", text)
	}
}
