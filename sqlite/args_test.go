package sqlite

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// U3: people find jobs by what is in their arguments, wherever a job is in its
// life, and never meet a null.
func TestArgumentsAreFoundBySQLAndAreNeverNull(t *testing.T) {
	s := open(t, Memory)
	client := stint.NewClient(s)
	enqueue := func(args string, opts ...stint.Option) stint.ID {
		id, err := client.Enqueue(t.Context(), stint.KindInfo{Name: "k"}.Job(json.RawMessage(args), opts...))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	ids := func(where string) (found []stint.ID) {
		err := s.read(t.Context(), func(c *conn) error {
			return c.query("select id from stint_jobs where "+where, nil, func(q *stmt) error {
				found = append(found, stint.ID(q.ColumnInt64(0)))
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	w := storetest.Join(t, s, "k")
	want := map[string]stint.ID{}
	want["returned"] = enqueue(`{"customer": "returned"}`)
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartKind}, w.One())
	w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, w.One())
	want["done"] = enqueue(`{"customer": "done"}`)
	w.Complete(w.ClaimAll()...)
	want["later"] = enqueue(`{"customer": "later"}`, stint.Delay(time.Hour))
	for key, id := range want {
		if got := ids(`args ->> 'customer' = '` + key + `'`); len(got) != 1 || got[0] != id {
			t.Errorf("%s finds jobs %v, want %d", key, got, id)
		}
	}
	both := []stint.ID{enqueue(`{"customer": 42, "new": true}`), enqueue(`{"customer": 42}`, stint.Delay(time.Hour))}
	if got := ids(`args ->> 'customer' = 42 order by id`); !slices.Equal(got, both) {
		t.Errorf("by a number jobs %v are found, want %v", got, both)
	}
	enqueue(``)
	enqueue(`null`, stint.Delay(time.Hour))
	if got := ids(`args = '{}'`); len(got) != 2 {
		t.Errorf("%d jobs have an empty object, want 2", len(got))
	}
	if got := ids(`args is null or args = 'null'`); len(got) != 0 {
		t.Errorf("%d jobs have null", len(got))
	}
	w.Leave()
}
