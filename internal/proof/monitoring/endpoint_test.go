package monitoring

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/sqlite"
)

// watched runs an engine that has work of every outcome until the test ends, and
// returns what its program exports of it, as soon as all of that is there.
func watched(t *testing.T) *prometheus.Registry {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	mux := stint.NewMux()
	mail, report := stint.NewKind[struct{}]("mail", stint.Limited("smtp")), stint.NewKind[struct{}]("report", stint.Queue("reports"))
	stint.Handle(mux, mail, func(context.Context, *stint.Job, struct{}) error { time.Sleep(time.Millisecond); return nil }).
		Hook(stint.Hooks{AfterSuccess: func(context.Context, *stint.Job, *stint.Attempt) error { return errors.New("nobody listens") }})
	stint.Handle(mux, report, func(context.Context, *stint.Job, struct{}) error { return stint.NoRetry(errors.New("no paper")) })
	mux.Limit("smtp", stint.LimitRule{AtOnce: 10})
	events, registry := prom.NewEvents(), prometheus.NewRegistry()
	worker, err := engine.New(store, mux, engine.Config{Slots: 2, Queues: []string{"*"}, OnEvent: events.On, MetricsEvery: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	registry.MustRegister(prom.BuildInfo(), events, prom.Figures(worker.Metrics), prom.Store(store),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if _, err := store.Pause(ctx, "archive", "somebody", "there is always something that waits"); err != nil {
		t.Fatal(err)
	}
	client := stint.NewClient(store)
	if err := client.Schedule(ctx, "somebody", stint.Schedule{Name: "hourly", Recurrence: cron.MustParse("every 1h"), Job: stint.NewJob{Kind: "report"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := mail.Enqueue(ctx, client, struct{}{}, stint.Queue("archive")); err != nil {
		t.Fatal(err)
	}
	ran, fed := make(chan error, 1), make(chan error, 1)
	go func() { ran <- worker.Run(ctx) }()
	go func() { fed <- feed(ctx, client, mail, report) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ran, <-fed, store.Close()); err != nil {
			t.Error(err)
		}
	})
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		all := exported(t, registry)
		missing := slices.DeleteFunc(slices.Clone(late), func(name string) bool { return all[name].Name != "" })
		if len(missing) == 0 {
			return registry
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("after a minute there are no %v", missing)
		}
	}
}

// late are metrics that are there only once something has happened.
var late = []string{"stint_jobs_failed_total", "stint_trouble_total", "stint_jobs_queued", "stint_oldest_job_age_seconds", "stint_limit_permits", "stint_jobs", "stint_queue_paused", "stint_schedule_lag_seconds"}

// feed enqueues jobs until ctx ends.
func feed(ctx context.Context, client *stint.Client, mail, report stint.Kind[struct{}]) error {
	for n := 0; ctx.Err() == nil; n++ {
		kind := mail
		if n%10 == 0 {
			kind = report
		}
		if _, err := kind.Enqueue(ctx, client, struct{}{}); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

// metric is one that is exported.
type metric struct {
	Name   string
	Type   string // in lower case
	Help   string
	Labels []string // sorted; of the target there are job and instance beside
}

// families are all metrics as an endpoint describes them, by name.
func families(t *testing.T, from prometheus.Gatherer) (all []metric) {
	t.Helper()
	gathered, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range gathered {
		m := metric{Name: f.GetName(), Type: strings.ToLower(f.GetType().String()), Help: f.GetHelp()}
		for _, label := range f.GetMetric()[0].GetLabel() {
			m.Labels = append(m.Labels, label.GetName())
		}
		slices.Sort(m.Labels)
		all = append(all, m)
	}
	return all
}

// exported are all metrics under the names that queries use.
func exported(t *testing.T, from prometheus.Gatherer) map[string]metric {
	t.Helper()
	all := map[string]metric{"up": {Name: "up"}}
	add := func(m metric, suffix string, labels ...string) {
		m.Name += suffix
		m.Labels = slices.Concat(m.Labels, labels)
		all[m.Name] = m
	}
	for _, m := range families(t, from) {
		switch m.Type {
		case "histogram":
			add(m, "_bucket", "le")
			fallthrough
		case "summary":
			add(m, "_sum")
			add(m, "_count")
		default:
			add(m, "")
		}
	}
	return all
}
