package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// What people read of attempts by SQL is what a program reads of them.
func TestTheViewOfAttemptsSaysWhatJobsShowSays(t *testing.T) {
	t.Parallel()
	s := verified(t)
	b := &bench{t, s, nil}
	w := b.join()
	jobs := b.enqueue(2, stint.Queue("mail"))
	both := w.ClaimAll()
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("refused")}, both[0])
	w.Complete(both[1])
	exec(t, s, `update stint.waiting set due = now()`)
	_, err := s.Promote(t.Context(), time.Time{}, 10)
	must(t, err)
	w.Finish(store.Result{Outcome: stint.OutcomeCompleted, Result: json.RawMessage(`{"sent": 1}`)}, w.ClaimAll()...)
	jobs = append(jobs, b.enqueue(3)...)
	all := w.ClaimAll()
	w.Heartbeat(all[0].Pos)
	w.Leave() // one is lost, two are returned
	v := b.join()
	v.Complete(v.ClaimAll()...)
	later := b.enqueue(1, stint.Delay(time.Hour))
	_, err = s.Cancel(t.Context(), later, "no longer wanted")
	must(t, err)
	jobs = append(jobs, later...)
	v.Leave()

	type attempt struct {
		Job                   stint.ID
		Attempt               int
		Kind, Queue, Outcome  string
		Final                 bool
		Reason, Error, Result *string
		Started, Finished     *time.Time
		Took, Waited          *time.Duration
		Instance, Host        *string
	}
	rows, err := s.pool.Query(t.Context(), `
		select job, attempt, kind, queue, outcome, final, reason, error ->> 'message', result::text, started, finished, took, waited, instance, host
		from stint.attempts order by job, pos`)
	must(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[attempt])
	must(t, err)
	var says, want strings.Builder
	for _, a := range got {
		fmt.Fprintln(&says, a.Job, a.Attempt, a.Kind, a.Queue, a.Outcome, a.Final, text(a.Error), text(a.Result), text(a.Instance), text(a.Host), a.Started != nil, a.Finished.UTC())
		if began := a.Started != nil; began != (a.Took != nil) || began && (*a.Took != a.Finished.Sub(*a.Started) || *a.Waited < 0) {
			t.Errorf("attempt %d of job %d began at %v, ended at %v, took %v and had waited for %v", a.Attempt, a.Job, a.Started, a.Finished, a.Took, a.Waited)
		}
	}
	for _, id := range jobs {
		j, err := s.Job(t.Context(), id)
		must(t, err)
		for _, x := range j.Attempts {
			var message string
			if x.Error != nil {
				message = x.Error.Message
			}
			fmt.Fprintln(&want, id, x.Attempt, j.Kind, j.Queue, x.Outcome, x.Final, message, string(x.Result), x.Instance, x.Host, x.Slot > 0, x.Finished.UTC())
		}
	}
	if says.String() != want.String() {
		t.Errorf("the view says\n%s\njobs show says\n%s", &says, &want)
	}
	for _, outcome := range []string{"completed", "failed", "lost", "returned", "cancelled"} {
		if !strings.Contains(says.String(), outcome) {
			t.Errorf("none of the attempts is %s", outcome)
		}
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// The statements of the page about SQL run as they stand there,
// and the history of one job costs no more in a long history.
func TestTheQueriesThatEverybodyWritesRunAndAreCheap(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	w := storetest.Join(t, s, "k")
	grow(t, s, w.Info.Token, 20_000)
	exec(t, s, `vacuum analyze`)
	page, err := os.ReadFile("../docs/sql.md")
	must(t, err)
	conn, asks := connect(t, s), 0
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for asked := range strings.SplitSeq(strings.TrimSpace(block[1]), ";\n") {
			asked = strings.ReplaceAll(strings.TrimSuffix(asked, ";"), "send_invoice", "k")
			asks++
			rows, err := conn.Query(t.Context(), asked)
			must(t, err)
			n := 0
			for rows.Next() {
				n++
			}
			must(t, rows.Err())
			if n == 0 {
				t.Errorf("nothing is found by\n%s", asked)
			}
			if blocks := cost(t, conn, "", asked); strings.Contains(asked, "job =") && blocks > 60 {
				t.Errorf("one job's history costs %d blocks: \n%s", blocks, asked)
			}
		}
	}
	if asks != 5 {
		t.Errorf("the page has %d statements, want 5", asks)
	}
}
