package view_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/store"
)

func TestAJobThatIsReadySaysWhatItWaitsFor(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	engine := func(change func(e *store.EngineInfo)) store.EngineInfo {
		e := store.EngineInfo{Kinds: []string{"mail"}, Queues: []string{"fast"}, Slots: 2, TimeToLive: 6 * time.Second, Beat: now.Add(-time.Second)}
		change(&e)
		return e
	}
	ready := engine(func(*store.EngineInfo) {})
	otherKind := engine(func(e *store.EngineInfo) { e.Kinds = []string{"print"} })
	otherQueue := engine(func(e *store.EngineInfo) { e.Queues = []string{"slow"} })
	silent := engine(func(e *store.EngineInfo) { e.Beat = now.Add(-7 * time.Second) })
	gone := engine(func(e *store.EngineInfo) { e.Gone = true })
	draining := engine(func(e *store.EngineInfo) { e.Draining = true })
	busy := engine(func(e *store.EngineInfo) { e.Running = make([]store.Position, 2) })
	half := engine(func(e *store.EngineInfo) { e.Running = make([]store.Position, 1) })
	lone := engine(func(e *store.EngineInfo) { e.Slots, e.Running = 1, make([]store.Position, 1) })
	for name, c := range map[string]struct {
		engines []store.EngineInfo
		paused  []string
		want    string
	}{
		"nobody is there":           {nil, nil, "waits for an engine"},
		"somebody has time":         {[]store.EngineInfo{ready}, nil, "waits for an engine"},
		"one of them has time":      {[]store.EngineInfo{silent, draining, busy, half}, nil, "waits for an engine"},
		"the queue is paused":       {[]store.EngineInfo{ready}, []string{"fast"}, "its queue is paused"},
		"another queue is paused":   {[]store.EngineInfo{ready}, []string{"slow"}, "waits for an engine"},
		"nobody performs it":        {[]store.EngineInfo{otherKind}, nil, "waits for an engine that handles mail"},
		"nobody works on its queue": {[]store.EngineInfo{otherKind, otherQueue}, nil, "waits for an engine that works on the queue fast"},
		"who would do not beat":     {[]store.EngineInfo{silent, gone, otherQueue, otherKind}, nil, "waits for an engine: those that would take it do not beat"},
		"who would drain":           {[]store.EngineInfo{draining, silent, otherKind}, nil, "waits for an engine: those that would take it drain"},
		"who would are busy":        {[]store.EngineInfo{busy, busy, draining, silent, otherKind}, nil, "waits for a slot: all 4 are busy"},
		"the only slot is busy":     {[]store.EngineInfo{lone}, nil, "waits for a slot: the only one is busy"},
	} {
		crew := view.Crew{Engines: c.engines, Paused: c.paused}
		if got := crew.WaitsForInWords(stint.JobInfo{Kind: "mail", Queue: "fast", State: stint.Available}, now); got != c.want {
			t.Errorf("%s: it %s, want %s", name, got, c.want)
		}
	}
}
