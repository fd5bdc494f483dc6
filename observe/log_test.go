package observe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/observe"
	"github.com/stint-go/stint/store"
)

// linesOf are what the log says of events, without their times.
func linesOf(config observe.LogConfig, events ...event.Event) []map[string]any {
	var out bytes.Buffer
	on := observe.Log(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), config)
	for _, e := range events {
		on(e)
	}
	var lines []map[string]any
	for line := range strings.Lines(out.String()) {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			panic(err)
		}
		delete(fields, "time")
		lines = append(lines, fields)
	}
	return lines
}

var aJob = &stint.Job{ID: 7, Kind: "sh", Queue: "mail", Attempt: 2}

func TestALineHasLevelInstanceWorkerJobAndDuration(t *testing.T) {
	began := time.Now()
	x := &store.Completion{
		Outcome: stint.OutcomeFailed, Attempt: 2, Slot: 3, Started: began, Ended: began.Add(250 * time.Millisecond),
		Error: &stint.Failure{Class: "network", Message: "no route"}, Next: &store.Next{Wait: true, Delay: time.Minute},
	}
	got := linesOf(observe.LogConfig{},
		event.Event{Type: event.EventStarted, Instance: "one", Job: aJob, Slot: 3},
		event.Event{Type: event.EventEnded, Instance: "one", Job: aJob, Attempt: x},
		event.Event{Type: event.EventJoined, Instance: "one"},
		event.Event{Type: event.EventBurial, Instance: "one", Count: 3, Begun: 1, Other: &store.EngineInfo{Instance: "two"}},
		event.Event{Type: event.EventSettled, Instance: "one", Count: 2, Begun: 1},
		event.Event{Type: event.EventDraining, Instance: "one", Err: errors.New("too\nlarge")},
		event.Event{Type: event.EventLeaseAcquired, Instance: "one", Lease: "retention"},
		event.Event{Type: event.EventRetained, Instance: "one", Count: 9},
		event.Event{Type: event.EventLeaseLost, Instance: "one", Lease: "retention", Err: stint.ErrStopping},
		event.Event{Type: event.EventLeaseLost, Instance: "one", Lease: "retention", Err: store.ErrNotHeld},
	)
	want := []map[string]any{
		{"level": "DEBUG", "msg": "attempt started", "instance": "one", "job": 7., "kind": "sh", "queue": "mail", "attempt": 2., "slot": 3.},
		{
			"level": "WARN", "msg": "attempt failed", "instance": "one", "job": 7., "kind": "sh", "queue": "mail", "attempt": 2., "slot": 3.,
			"outcome": "failed", "took": "250ms", "error_class": "network", "error": "no route", "next": "1m0s",
		},
		{"level": "INFO", "msg": "engine joined the roster", "instance": "one"},
		{"level": "WARN", "msg": "took over the jobs of an engine that died", "instance": "one", "count": 3., "known_begun": 1., "buried": "two"},
		{"level": "WARN", "msg": "recorded what became of the jobs that it held when it lost its place", "instance": "one", "count": 2., "known_begun": 1.},
		{"level": "WARN", "msg": "engine takes no more jobs, and leaves when those that run have ended", "instance": "one", "reason": "too large"},
		{"level": "INFO", "msg": "engine acquired a lease", "instance": "one", "lease": "retention"},
		{"level": "INFO", "msg": "deleted jobs that ended long ago", "instance": "one", "count": 9.},
		{"level": "INFO", "msg": "engine does not hold a lease any more", "instance": "one", "lease": "retention", "reason": stint.ErrStopping.Error()},
		{"level": "WARN", "msg": "engine does not hold a lease any more", "instance": "one", "lease": "retention", "reason": store.ErrNotHeld.Error()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lines are not what was wanted (-want +got):\n%s", diff)
	}
}

func TestTroubleWithAJobIsNotSaidToBeTriedAgain(t *testing.T) {
	got := linesOf(observe.LogConfig{}, event.Event{
		Type: event.EventTrouble, Time: time.Now(), Job: aJob, Doing: "call the finally hook of sh", Err: errors.New("no mail"),
	}, event.Event{Type: event.EventTrouble, Time: time.Now(), Doing: "beat", Err: errors.New("no\nserver")})
	if got[0]["msg"] != "cannot call the finally hook of sh" || got[0]["error"] != "no mail" || got[0]["job"] != 7. {
		t.Errorf("of trouble with a job it says %v", got[0])
	}
	if got[1]["msg"] != "cannot beat, trying again" || got[1]["error"] != "no server" {
		t.Errorf("of trouble it says %v", got[1])
	}
}

func TestAJobThatFailedForGoodIsLoggedOnce(t *testing.T) {
	lost := &store.Completion{Outcome: stint.OutcomeLost, Final: true, Reason: "lost"}
	ended := &store.Completion{Outcome: stint.OutcomeFailed, Final: true, Slot: 1}
	for name, events := range map[string][]event.Event{
		"with an engine that was lost": {{Type: event.EventFailed, Job: aJob, Attempt: lost}},
		"here":                         {{Type: event.EventEnded, Job: aJob, Attempt: ended}, {Type: event.EventFailed, Job: aJob, Attempt: ended}},
	} {
		got := linesOf(observe.LogConfig{}, events...)
		if len(got) != 1 || got[0]["level"] != "ERROR" || got[0]["msg"] != "job failed" {
			t.Errorf("of a job that failed %s it says %v", name, got)
		}
	}
}

func TestTroubleThatGoesOnIsALineEachTenSecondsAndSaysHowOftenItWasSilent(t *testing.T) {
	begin := time.Now()
	var events []event.Event
	for i := range 25 { // one each second
		events = append(events, event.Event{Type: event.EventTrouble, Time: begin.Add(time.Duration(i) * time.Second), Doing: "beat", Err: errors.New("down")})
	}
	events = append(events, event.Event{Type: event.EventTrouble, Time: begin, Doing: "claim", Err: errors.New("down")})
	got := linesOf(observe.LogConfig{}, events...)
	if len(got) != 4 || got[1]["suppressed"] != 9. || got[2]["suppressed"] != 9. || got[3]["msg"] != "cannot claim, trying again" {
		t.Errorf("it says %v", got)
	}
	if all := linesOf(observe.LogConfig{Repeat: -1}, events...); len(all) != 26 {
		t.Errorf("with nothing left out it says %d lines", len(all))
	}
}

// A fleet that falls apart is trouble of a kind for each of its engines.
func TestThereAreNeverMoreThanThirtyLinesAboutTroubleInAMinute(t *testing.T) {
	begin := time.Now()
	trouble := func(after time.Duration, doing string) event.Event {
		return event.Event{Type: event.EventTrouble, Time: begin.Add(after), Doing: doing, Err: errors.New("down")}
	}
	var events []event.Event
	for i := range 600 { // three minutes long
		events = append(events, trouble(time.Duration(i)*300*time.Millisecond, fmt.Sprintf("bury worker-%d", i)))
	}
	events = append(events, trouble(time.Hour, "beat"))
	var lines []time.Duration
	told := 0
	at := time.Duration(0)
	on := observe.Log(slog.New(each(func(r slog.Record) {
		lines = append(lines, at)
		told++
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == observe.KeyMissing {
				told += int(a.Value.Int64())
			}
			return true
		})
	})))
	for _, e := range events {
		at = e.Time.Sub(begin)
		on(e)
	}
	for i := range lines[:max(0, len(lines)-30)] {
		if d := lines[i+30] - lines[i]; d < time.Minute {
			t.Fatalf("from %v on it says 31 lines in %v", lines[i], d)
		}
	}
	if len(lines) != 3*30+1 || told != len(events) {
		t.Errorf("it says %d lines, and that there were %d, want %d and %d", len(lines), told, 3*30+1, len(events))
	}
	if all := linesOf(observe.LogConfig{Repeat: -1}, events...); len(all) != len(events) {
		t.Errorf("with nothing left out it says %d lines, want %d", len(all), len(events))
	}
}

func TestAttemptsAreToldOfHoweverMuchTroubleThereIs(t *testing.T) {
	now := time.Now()
	var events []event.Event
	for i := range 100 {
		events = append(events,
			event.Event{Type: event.EventTrouble, Time: now, Doing: fmt.Sprintf("bury worker-%d", i), Err: errors.New("down")},
			event.Event{Type: event.EventEnded, Time: now, Job: aJob, Attempt: &store.Completion{Outcome: stint.OutcomeFailed, Slot: 1}},
			event.Event{Type: event.EventBuried, Time: now})
	}
	said := map[any]int{}
	for _, line := range linesOf(observe.LogConfig{}, events...) {
		said[line["msg"]]++
	}
	if len(said) != 32 || said["attempt failed"] != 100 || said["engine lost its place in the roster and joins again; what it ran may run elsewhere"] != 100 {
		t.Errorf("it says %v", said)
	}
}

// What is forgotten of many kinds of trouble was left out all the same.
func TestWhatIsLeftOutIsToldHoweverManyKindsOfTroubleThereAre(t *testing.T) {
	begin := time.Now()
	var events []event.Event
	for i := range 2500 { // each of them twice
		doing := fmt.Sprintf("bury worker-%d", i)
		for k := range 2 {
			at := begin.Add(time.Duration(i)*3*time.Second + time.Duration(k)*time.Second)
			events = append(events, event.Event{Type: event.EventTrouble, Time: at, Doing: doing, Err: errors.New("down")})
		}
	}
	lines := linesOf(observe.LogConfig{}, events...)
	told := len(lines)
	for _, line := range lines {
		if n, ok := line["suppressed"].(float64); ok {
			told += int(n)
		}
	}
	if missing := len(events) - told; missing > 1000 {
		t.Errorf("of %d events %d are not accounted for", len(events), missing)
	}
}

// each makes a function a handler of slog's.
type each func(slog.Record)

func (f each) Enabled(context.Context, slog.Level) bool      { return true }
func (f each) Handle(_ context.Context, r slog.Record) error { f(r); return nil }
func (f each) WithAttrs([]slog.Attr) slog.Handler            { return f }
func (f each) WithGroup(string) slog.Handler                 { return f }

func TestSuccessesHaveALevelOfTheirOwn(t *testing.T) {
	fine := event.Event{Type: event.EventEnded, Job: aJob, Attempt: &store.Completion{Outcome: stint.OutcomeCompleted, Final: true, Slot: 1}}
	if got := linesOf(observe.LogConfig{}, fine); got[0]["level"] != "INFO" {
		t.Errorf("by default it says %v", got)
	}
	if got := linesOf(observe.LogConfig{Successes: slog.LevelDebug}, fine); got[0]["level"] != "DEBUG" {
		t.Errorf("at debug it says %v", got)
	}
}

func TestAnEngineThatItsProgramLetGoIsNoError(t *testing.T) {
	for want, err := range map[string]error{"ERROR": nil, "INFO": errors.New("it is being stopped")} {
		if lines := linesOf(observe.LogConfig{}, event.Event{Type: event.EventBuried, Err: err}); len(lines) != 1 || lines[0]["level"] != want {
			t.Errorf("with %v it says %v", err, lines)
		}
	}
}

func TestALoggerMayBeReplacedAtAnyTime(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	on := observe.Log(nil)
	var out bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	on(event.Event{Type: event.EventJoined, Instance: "one"})
	if !strings.Contains(out.String(), "engine joined the roster") {
		t.Errorf("the new one was told %q", out.String())
	}
}

func TestAListenerThatPanicsKeepsNothingFromTheOthersAndIsTold(t *testing.T) {
	var heard []event.Event
	note := func(e event.Event) { heard = append(heard, e) }
	on := observe.Fan(note, nil, func(event.Event) { panic("no room") }, note)
	on(event.Event{Type: event.EventJoined, Instance: "one"})
	if len(heard) != 4 {
		t.Fatalf("they heard %v", heard)
	}
	for i, want := range []event.EventType{event.EventJoined, event.EventTrouble, event.EventTrouble, event.EventJoined} {
		if heard[i].Type != want || heard[i].Instance != "one" {
			t.Errorf("the %dth was %+v", i+1, heard[i])
		}
	}
	if p, ok := errors.AsType[*stint.PanicError](heard[1].Err); !ok || p.Value != "no room" || heard[1].Doing != "tell listener 2 of an event of the type joined" || heard[1].About != "joined" {
		t.Errorf("the trouble was %+v", heard[1])
	}
}

func TestStatementsAreLoggedInOneLineAndQuickOnesOnlyOnRequest(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	quick := event.Query{Text: "select\n\t 1", Took: time.Millisecond, Rows: 1}
	slow, failed := quick, quick
	slow.Took = time.Second
	failed.Err = errors.New("no\nsuch table")
	observe.SQL(log, 0)(quick)
	if got := out.String(); !strings.Contains(got, `level=INFO msg=statement took=1ms rows=1 sql="select 1"`) {
		t.Errorf("the line is %s", got)
	}
	out.Reset()
	on := observe.SQL(log, 50*time.Millisecond)
	on(quick)
	on(slow)
	on(failed)
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "took=1s") || !strings.Contains(got, `level=WARN msg=statement took=1ms rows=1 error="no such table"`) {
		t.Errorf("the lines are %s", got)
	}
}
