package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/stinttest"
)

const secret = "a secret that is long enough"

// world is a test's office: what was mailed, and how often what was paid.
type world struct {
	mails []string
	paid  map[string]int
	fails int // payments that fail at first
}

func (w *world) office(t *testing.T) office {
	key, err := link.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	w.paid = map[string]int{}
	return office{key: key, base: "http://localhost:8080",
		mail: func(_ context.Context, to, text string) error {
			w.mails = append(w.mails, to+": "+text)
			return nil
		},
		pay: func(_ context.Context, _ Order, key string) (string, error) {
			if w.paid[key]++; w.paid[key] <= w.fails {
				return "", errors.New("the bank does not answer")
			}
			return "receipt", nil
		},
	}
}

func open(t *testing.T) *sqlite.Store {
	db, err := sqlite.Open(t.Context(), sqlite.Memory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

var order = Order{17, "ACME", 900, "ann"}

// answer presses a button of the page to which the mailed link leads.
func (w *world) answer(t *testing.T, db *sqlite.Store, choice string) {
	t.Helper()
	board, err := dashboard.New(db, dashboard.Config{LinkKey: secret})
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(w.mails[0], "http://localhost:8080")
	request := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost:8080"+path, strings.NewReader(url.Values{"choice": {choice}}.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := httptest.NewRecorder()
	board.ServeHTTP(answer, request)
	if answer.Code >= http.StatusBadRequest {
		t.Fatalf("the page answers %d: %s", answer.Code, answer.Body)
	}
}

func TestAnOrderIsPaidOnceAfterTheApproverAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, db := &world{fails: 2}, open(t)
		worker := stinttest.On(t, db, w.office(t).handlers())
		run := stinttest.Perform(worker, PayOrder, order)
		if len(w.mails) != 1 || len(w.paid) > 0 {
			t.Fatalf("before the answer it mailed %q and paid %v", w.mails, w.paid)
		}
		w.answer(t, db, "pay")
		worker.Drain()
		job, err := worker.Client().Job(t.Context(), run.Job.ID)
		if err != nil || job.State != stint.Completed {
			t.Errorf("the job is %v, %v", job.State, err)
		}
		if len(w.mails) != 2 || w.paid["order-17"] != 3 {
			t.Errorf("it mailed %q and asked the bank for %v", w.mails, w.paid)
		}
	})
}

func TestAnOrderIsNotPaidWhenItIsRefusedOrNobodyAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, w *world, db *sqlite.Store)
		reason    string
	}{
		"refused":   {func(t *testing.T, w *world, db *sqlite.Store) { w.answer(t, db, "refuse") }, "ann refused it"},
		"no answer": {func(*testing.T, *world, *sqlite.Store) { time.Sleep(patience) }, "nobody approved it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, db := &world{}, open(t)
				worker := stinttest.On(t, db, w.office(t).handlers())
				run := stinttest.Perform(worker, PayOrder, order)
				c.meanwhile(t, w, db)
				worker.Drain(stinttest.Within(time.Minute))
				job, err := worker.Client().Job(t.Context(), run.Job.ID)
				if err != nil || job.State != stint.Cancelled || !strings.Contains(job.Reason, c.reason) {
					t.Errorf("the job is %v: %s, %v", job.State, job.Reason, err)
				}
				if len(w.mails) != 1 || len(w.paid) > 0 {
					t.Errorf("it mailed %q and paid %v", w.mails, w.paid)
				}
			})
		})
	}
}
