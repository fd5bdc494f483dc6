package observe_test

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/observe"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// logger writes lines without what is different each time.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == observe.KeyTook {
			return slog.Attr{}
		}
		return a
	}}))
}

func ExampleLog() {
	// In a program: engine.Config{OnEvent: observe.Log(logger)}
	on := observe.Log(logger(), observe.LogConfig{Successes: slog.LevelDebug})
	job := &stint.Job{ID: 7, Kind: "send_invoice", Queue: "mail", Attempt: 1}
	began := time.Now()
	on(event.Event{Type: event.EventJoined, Instance: "host-1"})
	on(event.Event{Type: event.EventEnded, Instance: "host-1", Job: job, Attempt: &store.Completion{
		Attempt: 1, Slot: 3, Outcome: stint.OutcomeFailed, Started: began, Ended: began.Add(time.Second),
		Error: &stint.Failure{Class: "network", Message: "no route to host"},
	}})
	on(event.Event{Type: event.EventTrouble, Instance: "host-1", Time: began, Doing: "beat", Err: errors.New("connection refused")})
	// Output:
	// level=INFO msg="engine joined the roster" instance=host-1
	// level=WARN msg="attempt failed" job=7 kind=send_invoice queue=mail attempt=1 slot=3 outcome=failed error_class=network error="no route to host" instance=host-1
	// level=WARN msg="cannot beat, trying again" error="connection refused" instance=host-1
}

func ExampleFan() {
	burials := 0
	on := observe.Fan(
		observe.Log(logger()),
		func(e event.Event) {
			if e.Type == event.EventBurial {
				burials++ // or page somebody
			}
		},
	)
	on(event.Event{Type: event.EventBurial, Instance: "host-1", Count: 3, Begun: 1, Other: &store.EngineInfo{Instance: "host-2"}})
	// Output:
	// level=WARN msg="took over the jobs of an engine that died" count=3 known_begun=1 buried=host-2 instance=host-1
}

func ExampleSQL() {
	// postgres.Config has the same hook.
	config := sqlite.Config{OnQuery: observe.SQL(logger(), 50*time.Millisecond)}
	config.OnQuery(event.Query{Text: "select 1", Took: time.Millisecond, Rows: 1})
	config.OnQuery(event.Query{Text: "select count(*)\n  from stint_jobs", Took: time.Second, Rows: 1})
	// Output:
	// level=INFO msg=statement rows=1 sql="select count(*) from stint_jobs"
}
