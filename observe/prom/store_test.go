package prom_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/sqlite"
)

// filled is a store with jobs in queues.
func filled(t *testing.T, queues ...string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	for _, queue := range queues {
		if _, err := stint.NewClient(store).Enqueue(t.Context(), stint.NewJob{Kind: "mail", Queue: queue}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func TestWhatWaitsInAStoreIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := filled(t, "mail", "mail", "reports")
		later := stint.NewJob{Kind: "mail", Delay: time.Hour}
		if _, err := stint.NewClient(store).Enqueue(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c := prom.Store(store)
		shows(t, c, `
# HELP stint_jobs_claimed Jobs in the hands of engines that live, begun or not.
# TYPE stint_jobs_claimed gauge
stint_jobs_claimed 0
# HELP stint_jobs_postponed Jobs that are not due yet, or wait for a decision about a retry.
# TYPE stint_jobs_postponed gauge
stint_jobs_postponed 1
# HELP stint_jobs_queued Jobs that are due and that no engine has taken.
# TYPE stint_jobs_queued gauge
stint_jobs_queued{queue="mail"} 2
stint_jobs_queued{queue="reports"} 1
# HELP stint_jobs_zombies Jobs in the hands of engines that do not live any more.
# TYPE stint_jobs_zombies gauge
stint_jobs_zombies 0
# HELP stint_oldest_job_age_seconds For how long the oldest job that is due and not taken has been due.
# TYPE stint_oldest_job_age_seconds gauge
stint_oldest_job_age_seconds{queue="mail"} 60
stint_oldest_job_age_seconds{queue="reports"} 60
# HELP stint_store_up Whether the store answered when it was last looked at.
# TYPE stint_store_up gauge
stint_store_up 1
`, "stint_jobs_queued", "stint_jobs_postponed", "stint_jobs_claimed", "stint_jobs_zombies", "stint_oldest_job_age_seconds", "stint_store_up")
		if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

// A series that goes away looks like a target that does.
func TestAQueueThatHasBecomeEmptyKeepsItsSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := filled(t, "mail")
		c := prom.Store(store)
		testutil.CollectAndCount(c)
		if _, err := store.Cancel(t.Context(), []stint.ID{1}, ""); err != nil {
			t.Fatal(err)
		}
		for range 2 { // of which the first begins to look
			time.Sleep(time.Hour)
			testutil.CollectAndCount(c)
			synctest.Wait()
		}
		shows(t, c, `
# HELP stint_jobs_queued Jobs that are due and that no engine has taken.
# TYPE stint_jobs_queued gauge
stint_jobs_queued{queue="mail"} 0
`, "stint_jobs_queued")
	})
}

func TestHoweverManyQueuesHaveJobsTheSeriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queues []string
		for i := range 20 {
			queues = append(queues, fmt.Sprint("queue ", i))
		}
		c := prom.Store(filled(t, queues...), prom.Config{MaxQueues: 3})
		for _, name := range []string{"stint_jobs_queued", "stint_oldest_job_age_seconds"} {
			if n := testutil.CollectAndCount(c, name); n != 4 {
				t.Errorf("there are %d series %s", n, name)
			}
		}
	})
}

func TestAStoreThatDoesNotAnswerIsSaidToBeDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := filled(t, "mail")
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		shows(t, prom.Store(store), `
# HELP stint_store_up Whether the store answered when it was last looked at.
# TYPE stint_store_up gauge
stint_store_up 0
`)
	})
}
