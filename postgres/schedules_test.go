package postgres

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/store"
)

// hourly declares schedules, and returns a plan of an occurrence that is due now.
func hourly(t *testing.T, s *Store, names ...string) store.PlanFunc {
	t.Helper()
	var all []stint.Schedule
	for _, name := range names {
		all = append(all, stint.Schedule{Name: name, Recurrence: cron.Every(time.Hour), Job: stint.NewJob{Kind: "k"}})
	}
	must(t, s.DeclareSchedules(t.Context(), "", all))
	return func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
		at := s.After.Add(time.Microsecond)
		return store.Plan{Occurrences: []time.Time{at}, After: at, Next: now.Add(time.Hour)}, nil
	}
}

// A schedule that somebody is firing is passed over and not waited for.
func TestAScheduleThatSomebodyFiresIsPassedOver(t *testing.T) {
	s := verified(t)
	plan := hourly(t, s, "a", "b")
	other := begin(t, s)
	_, err := other.Exec(t.Context(), `select from stint.schedules where name = 'a' for update`)
	must(t, err)
	b := &bench{t, s, nil}
	for _, want := range []string{"b", "a"} { // beside the other one, and behind it
		if err := b.soon("who fires", func(ctx context.Context) error {
			f, err := s.FireSchedules(ctx, store.FireRequest{Limit: 10}, plan)
			if err == nil && (f.Moved != 1 || len(f.Jobs) != 1 || f.Jobs[0].Schedule != want) {
				t.Errorf("it fires %+v, want %s", f, want)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		_ = other.Rollback(t.Context())
	}
}

// A job that somebody else cancels at the same moment is cancelled, and no reason to
// keep its schedule.
func TestAScheduleIsRemovedBesideWhoCancelsItsJob(t *testing.T) {
	s := verified(t)
	f, err := s.FireSchedules(t.Context(), store.FireRequest{Limit: 10}, hourly(t, s, "a"))
	if err != nil || len(f.Jobs) != 1 {
		t.Fatalf("it fires %+v, error %v", f, err)
	}
	id := f.Jobs[0].ID
	other := begin(t, s)
	if got := value[string](t, other, `select stint.cancel($1, 'first')`, id); got != "cancelled" {
		t.Fatalf("the other one is told %q", got)
	}
	removed := make(chan error, 1)
	go func() {
		got, err := s.RemoveSchedule(t.Context(), "a", "second")
		if err == nil && !slices.Equal(got, []stint.ID{id}) {
			t.Errorf("it cancelled %v, want %d", got, id)
		}
		removed <- err
	}()
	blocked(t, s)
	must(t, other.Commit(t.Context()))
	must(t, <-removed)
	if j, err := s.Job(t.Context(), id); err != nil || j.State != stint.Cancelled || j.Reason != "first" {
		t.Errorf("the job is %+v, error %v", j, err)
	}
}
