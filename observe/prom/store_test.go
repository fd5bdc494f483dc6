package prom_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
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
# HELP stint_jobs Jobs that are stored, by state.
# TYPE stint_jobs gauge
stint_jobs{state="available"} 3
stint_jobs{state="blocked"} 0
stint_jobs{state="cancelled"} 0
stint_jobs{state="completed"} 0
stint_jobs{state="failed"} 0
stint_jobs{state="retrying"} 0
stint_jobs{state="running"} 0
stint_jobs{state="scheduled"} 1
# HELP stint_jobs_limited Jobs that are queued and that a limit lets not start.
# TYPE stint_jobs_limited gauge
stint_jobs_limited 0
# HELP stint_jobs_queued Jobs that are due and that no engine has taken.
# TYPE stint_jobs_queued gauge
stint_jobs_queued{queue="mail"} 2
stint_jobs_queued{queue="reports"} 1
# HELP stint_jobs_zombies Orphaned jobs: held by engines that died, and not yet taken over.
# TYPE stint_jobs_zombies gauge
stint_jobs_zombies 0
# HELP stint_oldest_job_age_seconds For how long the oldest job that is due and not taken has been due.
# TYPE stint_oldest_job_age_seconds gauge
stint_oldest_job_age_seconds{queue="mail"} 60
stint_oldest_job_age_seconds{queue="reports"} 60
# HELP stint_store_up Whether the store answered when it was last looked at.
# TYPE stint_store_up gauge
stint_store_up 1
`, "stint_jobs", "stint_jobs_queued", "stint_jobs_limited", "stint_jobs_zombies", "stint_oldest_job_age_seconds", "stint_store_up")
		if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

func TestWantedEnginesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := filled(t, "mail", "mail", "reports")
		if _, err := db.Pause(t.Context(), "reports", "ann", "a leak"); err != nil {
			t.Fatal(err)
		}
		if err := db.Join(t.Context(), store.EngineInfo{Token: 7, Kinds: []string{"mail"}, Slots: 4, TimeToLive: time.Hour}, nil); err != nil {
			t.Fatal(err)
		}
		c := prom.Store(db, prom.Config{Target: time.Second})
		shows(t, c, `
# HELP stint_jobs_held_up Jobs that more engines could not run within the target: of paused queues, full limits, unknown kinds, or retries of a kind that fails.
# TYPE stint_jobs_held_up gauge
stint_jobs_held_up{queue="mail"} 0
stint_jobs_held_up{queue="reports"} 1
# HELP stint_wanted_engines Engines that would keep up with the work of all queues, if each had as many slots as those that run: 0 if there is none.
# TYPE stint_wanted_engines gauge
stint_wanted_engines 1
# HELP stint_wanted_slots Slots that would keep up with the work of a queue, without what more slots could not run.
# TYPE stint_wanted_slots gauge
stint_wanted_slots{queue="mail"} 2
stint_wanted_slots{queue="reports"} 0
`, "stint_jobs_held_up", "stint_wanted_engines", "stint_wanted_slots")
	})
}

// noted is a store in which nobody looks at a note.
type noted struct{ *sqlite.Store }

func (noted) Examine(context.Context, report.Options) (report.Facts, error) {
	return report.Facts{Flows: report.FlowFacts{Open: 2, Noted: time.Now().Add(-45 * time.Second)}}, nil
}

func TestFlowsAndNotesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shows(t, prom.Store(noted{filled(t)}), `
# HELP stint_flows_open Flows that have not ended, among the first 100,000 jobs that wait for others.
# TYPE stint_flows_open gauge
stint_flows_open 2
# HELP stint_oldest_note_age_seconds For how long the oldest change that jobs may wait for, of another job or a signal, has not been looked at: 0 in health.
# TYPE stint_oldest_note_age_seconds gauge
stint_oldest_note_age_seconds 45
`, "stint_flows_open", "stint_oldest_note_age_seconds")
	})
}

func TestPausedQueuesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := filled(t, "mail", "reports")
		for _, queue := range []string{"reports", "unused", "unused 2"} {
			if _, err := db.Pause(t.Context(), queue, "ann", "a leak"); err != nil {
				t.Fatal(err)
			}
		}
		shows(t, prom.Store(db, prom.Config{MaxQueues: 3}), `
# HELP stint_queue_paused Whether a queue is paused, and of all others how many are.
# TYPE stint_queue_paused gauge
stint_queue_paused{queue="mail"} 0
stint_queue_paused{queue="other"} 1
stint_queue_paused{queue="reports"} 1
stint_queue_paused{queue="unused"} 1
`, "stint_queue_paused")
	})
}

func TestSchedulesTellHowLateTheyAreAndWhatTheyMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := filled(t)
		client := stint.NewClient(db)
		declare := func(name string) {
			t.Helper()
			s := stint.Schedule{Name: name, Recurrence: cron.MustParse("every 1h"), Job: stint.NewJob{Kind: "report"}}
			if err := client.Schedule(t.Context(), "ann", s); err != nil {
				t.Fatal(err)
			}
		}
		declare("calm")
		if _, err := db.PauseSchedule(t.Context(), "calm", "ann", "holiday"); err != nil {
			t.Fatal(err)
		}
		declare("late")
		time.Sleep(30 * time.Minute)
		declare("soon")
		declare("z1")
		declare("z2")
		if _, err := db.RunSchedule(t.Context(), "soon"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(70 * time.Minute)
		shows(t, prom.Store(missing{db}, prom.Config{MaxSchedules: 3}), `
# HELP stint_schedule_fired_total Jobs that the schedule made.
# TYPE stint_schedule_fired_total counter
stint_schedule_fired_total{schedule="calm"} 0
stint_schedule_fired_total{schedule="late"} 0
stint_schedule_fired_total{schedule="soon"} 1
# HELP stint_schedule_lag_seconds For how long an occurrence of the schedule is due and has not been fired; of all others the longest.
# TYPE stint_schedule_lag_seconds gauge
stint_schedule_lag_seconds{schedule="calm"} 0
stint_schedule_lag_seconds{schedule="late"} 2400
stint_schedule_lag_seconds{schedule="other"} 600
stint_schedule_lag_seconds{schedule="soon"} 600
# HELP stint_schedule_missed_total Occurrences that were missed and not made up for.
# TYPE stint_schedule_missed_total counter
stint_schedule_missed_total{schedule="calm"} 0
stint_schedule_missed_total{schedule="late"} 7
stint_schedule_missed_total{schedule="soon"} 0
`, "stint_schedule_lag_seconds", "stint_schedule_fired_total", "stint_schedule_missed_total")
	})
}

// missing is a store whose schedule late has missed some of its occurrences.
type missing struct{ *sqlite.Store }

func (m missing) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	all, err := m.Store.Schedules(ctx)
	for i := range all {
		if all[i].Name == "late" {
			all[i].Passed = 7
		}
	}
	return all, err
}

func TestTheBuildIsTold(t *testing.T) {
	if n := testutil.CollectAndCount(prom.BuildInfo(), "stint_build_info"); n != 1 {
		t.Errorf("there are %d", n)
	}
	shows(t, prom.BuildInfo(), `
# HELP stint_build_info Always 1: the version of stint that the program has, and that of Go.
# TYPE stint_build_info gauge
stint_build_info{goversion="`+runtime.Version()+`",version="devel"} 1
`)
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

func TestLimitsTellWhatTheyAllowAndWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := filled(t)
		rules := map[string]stint.LimitRule{"smtp": {AtOnce: 3}, "tenant": {AtOnce: 2}, "erp": {Starts: 10, Per: time.Second}}
		if err := db.DeclareLimits(t.Context(), rules); err != nil {
			t.Fatal(err)
		}
		for engine := range store.EngineID(2) {
			if err := db.Join(t.Context(), store.EngineInfo{Token: engine + 1, Instance: fmt.Sprint(engine), TimeToLive: time.Hour}, nil); err != nil {
				t.Fatal(err)
			}
			tenant := store.Taking{Gates: []store.TakingGate{{Gate: fmt.Sprint("tenant=", engine)}}, Want: 1}
			smtp := store.Taking{Gates: []store.TakingGate{{Gate: "smtp"}}, Want: 2}
			if _, err := db.Permits(t.Context(), engine+1, store.PermitRequest{Take: []store.Taking{smtp, tenant}}); err != nil {
				t.Fatal(err)
			}
		}
		c := prom.Store(db, prom.Config{MaxLimits: 2})
		testutil.CollectAndCount(c)
		synctest.Wait()
		shows(t, c, `
# HELP stint_limit_permits How many jobs may run at once under a limit that bounds that, of all of its keys in use.
# TYPE stint_limit_permits gauge
stint_limit_permits{limit="smtp"} 3
# HELP stint_limit_permits_asked Permits to run jobs under a limit that engines wait for.
# TYPE stint_limit_permits_asked gauge
stint_limit_permits_asked{limit="erp"} 0
stint_limit_permits_asked{limit="other"} 0
stint_limit_permits_asked{limit="smtp"} 1
# HELP stint_limit_permits_held Permits to run jobs under a limit that engines hold.
# TYPE stint_limit_permits_held gauge
stint_limit_permits_held{limit="erp"} 0
stint_limit_permits_held{limit="other"} 2
stint_limit_permits_held{limit="smtp"} 3
`, "stint_limit_permits", "stint_limit_permits_held", "stint_limit_permits_asked")
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
