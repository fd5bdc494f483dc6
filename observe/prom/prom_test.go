package prom_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// shows compares metrics with their text.
func shows(t *testing.T, c prometheus.Collector, text string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(c, strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}

// attempt is how an attempt of a job is told.
func attempt(engine store.EngineID, job *stint.Job, outcome stint.Outcome, took time.Duration) (began, ended event.Event) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	job.Started = at
	x := &store.Completion{Outcome: outcome, Slot: 1, Started: at, Ended: at.Add(took)}
	return event.Event{Type: event.EventStarted, Engine: engine, Job: job, Ready: at.Add(-2 * time.Second)},
		event.Event{Type: event.EventEnded, Engine: engine, Job: job, Attempt: x}
}

func TestAttemptsAreCountedAndMeasured(t *testing.T) {
	m := prom.NewEvents(prom.Config{Buckets: []float64{1, 5}})
	m.On(event.Event{Type: event.EventJoined, Engine: 1})
	job := &stint.Job{Kind: "mail", Queue: "default"}
	began, ended := attempt(1, job, stint.OutcomeFailed, 500*time.Millisecond)
	m.On(began)
	shows(t, m, `
# HELP stint_attempts_running Attempts that go on now.
# TYPE stint_attempts_running gauge
stint_attempts_running{kind="mail",queue="default"} 1
`, "stint_attempts_running")
	m.On(ended)
	m.On(event.Event{Type: event.EventFailed, Engine: 1, Job: job, Attempt: ended.Attempt})
	began, ended = attempt(1, job, stint.OutcomeCompleted, 7*time.Second)
	m.On(began)
	m.On(ended)
	shows(t, m, `
# HELP stint_attempt_duration_seconds How long attempts took.
# TYPE stint_attempt_duration_seconds histogram
stint_attempt_duration_seconds_bucket{kind="mail",queue="default",le="1"} 1
stint_attempt_duration_seconds_bucket{kind="mail",queue="default",le="5"} 1
stint_attempt_duration_seconds_bucket{kind="mail",queue="default",le="+Inf"} 2
stint_attempt_duration_seconds_sum{kind="mail",queue="default"} 7.5
stint_attempt_duration_seconds_count{kind="mail",queue="default"} 2
# HELP stint_attempt_latency_seconds How long jobs that were due waited for their attempt to begin.
# TYPE stint_attempt_latency_seconds histogram
stint_attempt_latency_seconds_bucket{kind="mail",queue="default",le="1"} 0
stint_attempt_latency_seconds_bucket{kind="mail",queue="default",le="5"} 2
stint_attempt_latency_seconds_bucket{kind="mail",queue="default",le="+Inf"} 2
stint_attempt_latency_seconds_sum{kind="mail",queue="default"} 4
stint_attempt_latency_seconds_count{kind="mail",queue="default"} 2
# HELP stint_attempts_total Attempts that ended and are recorded, by outcome.
# TYPE stint_attempts_total counter
stint_attempts_total{kind="mail",outcome="completed",queue="default"} 1
stint_attempts_total{kind="mail",outcome="failed",queue="default"} 1
# HELP stint_engines Engines of this program that stand in the roster.
# TYPE stint_engines gauge
stint_engines 1
# HELP stint_jobs_failed_total Jobs that failed for good.
# TYPE stint_jobs_failed_total counter
stint_jobs_failed_total{kind="mail",queue="default"} 1
# HELP stint_attempts_running Attempts that go on now.
# TYPE stint_attempts_running gauge
stint_attempts_running{kind="mail",queue="default"} 0
`, "stint_attempts_total", "stint_attempt_duration_seconds", "stint_attempt_latency_seconds", "stint_jobs_failed_total", "stint_attempts_running", "stint_engines")
}

func TestWhatAnEngineWasFencedFromRunsNoLonger(t *testing.T) {
	m := prom.NewEvents()
	m.On(event.Event{Type: event.EventJoined, Engine: 1})
	began, ended := attempt(1, &stint.Job{Kind: "mail", Queue: "default"}, stint.OutcomeCompleted, time.Second)
	m.On(began)
	m.On(event.Event{Type: event.EventBuried, Engine: 1})
	m.On(event.Event{Type: event.EventBuried, Engine: 3, Err: errors.New("its program let go of it")})
	m.On(ended) // of what it kept, or of a record that was under way
	m.On(event.Event{Type: event.EventJoined, Engine: 2})
	shows(t, m, `
# HELP stint_engines Engines of this program that stand in the roster.
# TYPE stint_engines gauge
stint_engines 1
# HELP stint_fenced_total How often an engine found that it had been buried.
# TYPE stint_fenced_total counter
stint_fenced_total 1
`, "stint_attempts_running", "stint_engines", "stint_fenced_total")
}

func TestBurialsReturnsAndTroubleAreCounted(t *testing.T) {
	m := prom.NewEvents()
	m.On(event.Event{Type: event.EventBurial, Count: 5, Begun: 2, Other: &store.EngineInfo{}})
	m.On(event.Event{Type: event.EventBurial, Count: 1}) // what a burial that was cut short had left
	m.On(event.Event{Type: event.EventReturned, Count: 7})
	m.On(event.Event{Type: event.EventTrouble, Doing: "beat", Err: errors.New("down")})
	m.On(event.Event{Type: event.EventTrouble, Doing: "beat", Err: errors.New("down")})
	shows(t, m, `
# HELP stint_burial_jobs_total Jobs taken over from engines that died, by whether they had begun.
# TYPE stint_burial_jobs_total counter
stint_burial_jobs_total{begun="false"} 4
stint_burial_jobs_total{begun="true"} 2
# HELP stint_burials_total Engines that died and were buried by these.
# TYPE stint_burials_total counter
stint_burials_total 1
# HELP stint_jobs_returned_total Jobs that were handed back unstarted.
# TYPE stint_jobs_returned_total counter
stint_jobs_returned_total 7
# HELP stint_trouble_total What failed and is tried again, by what was tried.
# TYPE stint_trouble_total counter
stint_trouble_total{doing="beat"} 2
`, "stint_burials_total", "stint_burial_jobs_total", "stint_jobs_returned_total", "stint_trouble_total")
}

func TestTroubleIsToldApartByWhatWasTriedAndNotByNames(t *testing.T) {
	m := prom.NewEvents()
	for i := range 100 {
		name := fmt.Sprint("engine-", i)
		m.On(event.Event{Type: event.EventTrouble, Doing: "bury " + name, About: name})
	}
	m.On(event.Event{Type: event.EventTrouble, Doing: "beat"})
	shows(t, m, `
# HELP stint_trouble_total What failed and is tried again, by what was tried.
# TYPE stint_trouble_total counter
stint_trouble_total{doing="beat"} 1
stint_trouble_total{doing="bury"} 100
`, "stint_trouble_total")
}

func TestBurialsHaveARateFromTheFirstOn(t *testing.T) {
	shows(t, prom.NewEvents(), `
# HELP stint_burial_jobs_total Jobs taken over from engines that died, by whether they had begun.
# TYPE stint_burial_jobs_total counter
stint_burial_jobs_total{begun="false"} 0
stint_burial_jobs_total{begun="true"} 0
# HELP stint_burials_total Engines that died and were buried by these.
# TYPE stint_burials_total counter
stint_burials_total 0
`, "stint_burials_total", "stint_burial_jobs_total")
}

func TestHoweverManyKindsThereAreTheSeriesAreBounded(t *testing.T) {
	m := prom.NewEvents(prom.Config{MaxKinds: 3, MaxQueues: 2})
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			_, ended := attempt(1, &stint.Job{Kind: fmt.Sprint("kind ", i), Queue: fmt.Sprint("\xff", i)}, stint.OutcomeCompleted, time.Second)
			m.On(ended)
			m.On(event.Event{Type: event.EventTrouble, Doing: fmt.Sprint("call the hook of ", i)})
		})
	}
	all.Wait()
	if n := testutil.CollectAndCount(m, "stint_attempts_total"); n > 4*3 {
		t.Errorf("there are %d series of attempts", n)
	}
	if n := testutil.CollectAndCount(m, "stint_trouble_total"); n > 51 {
		t.Errorf("there are %d series of trouble", n)
	}
}

func TestNamesAndUnitsAreThoseThatToolsExpect(t *testing.T) {
	m := prom.NewEvents()
	began, ended := attempt(1, &stint.Job{Kind: "mail", Queue: "default"}, stint.OutcomeCompleted, time.Second)
	for _, e := range []event.Event{{Type: event.EventJoined, Engine: 1}, began, ended, {Type: event.EventBurial, Count: 1}, {Type: event.EventTrouble}} {
		m.On(e)
	}
	figures := prom.Figures(func() report.Metrics {
		return report.Metrics{Instance: "one", Kinds: map[string]report.Durations{"mail": {Count: 1}}}
	})
	for _, c := range []prometheus.Collector{m, figures} {
		problems, err := testutil.CollectAndLint(c)
		if err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
}

func TestTheFiguresOfAnEngineArePassedOn(t *testing.T) {
	now := report.Metrics{Instance: "one", Since: time.UnixMilli(1500), Kinds: map[string]report.Durations{
		"mail": {Count: 2, Total: 3 * time.Second}, "other one": {Count: 1, Total: time.Second}, "third": {Count: 4, Total: time.Second},
	}}
	figures := prom.Figures(func() report.Metrics { return now })
	now.Claimer.Claims, now.Workers.Running, now.Workers.Slots = 7, 3, 8
	now.Claimer.Took = report.Durations{Count: 7, Total: 70 * time.Millisecond}
	shows(t, figures, `
# HELP stint_engine_claim_seconds How long claims took.
# TYPE stint_engine_claim_seconds summary
stint_engine_claim_seconds_sum{engine="one"} 0.07
stint_engine_claim_seconds_count{engine="one"} 7
# HELP stint_engine_slots How many attempts may go on at once.
# TYPE stint_engine_slots gauge
stint_engine_slots{engine="one"} 8
`, "stint_engine_slots", "stint_engine_claim_seconds")
}

func TestTheFiguresOfTwoEnginesMayBeRegisteredTogether(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	for _, name := range []string{"one", "two"} {
		r.MustRegister(prom.Figures(func() report.Metrics { return report.Metrics{Instance: name} }))
	}
	r.MustRegister(prom.NewEvents())
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}
