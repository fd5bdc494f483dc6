//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
)

// Ticks are the schedules that each worker of a fleet declares when it joins, all
// alike.
type Ticks struct {
	Schedules  int
	Recurrence string    // of each; an interval of at least a second, or cron's
	Until      time.Time // the last occurrence comes no later
}

// tickKind is the kind of their jobs.
const tickKind = "tick"

// names are those of the schedules.
func (t *Ticks) names() []string {
	all := make([]string, t.Schedules)
	for i := range all {
		all[i] = fmt.Sprintf("tick-%04d", i)
	}
	return all
}

// declared are the schedules. Whatever was missed is made up for, so that each
// occurrence has its job however long nobody fired.
func (t *Ticks) declared() []stint.Schedule {
	all := make([]stint.Schedule, t.Schedules)
	for i, name := range t.names() {
		all[i] = stint.Schedule{
			Name: name, Recurrence: cron.MustParse(t.Recurrence), Missed: stint.MissedAll(stint.MaxMissed), NotAfter: t.Until,
			Job: stint.NewJob{Kind: tickKind},
		}
	}
	return all
}

// runTicks works as any program with schedules does. Its database is a server's
// or a file.
func (w *Worker) runTicks(ctx context.Context) error {
	ground, err := Open(ctx, w.DB)
	if err != nil {
		return err
	}
	defer ground.Close()
	diary, err := os.OpenFile(w.path(w.Name+tickSuffix), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer diary.Close()
	mux := stint.NewMux()
	mux.Schedule(w.Ticks.declared()...)
	mux.Add(stint.KindInfo{Name: tickKind}, func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
		p := job.Origin
		// One write is whole or missing, whenever the process dies.
		if _, err := fmt.Fprintln(diary, job.ID, p.Schedule, p.Nth, p.Occurrence.UnixMicro(), job.Due.UnixMicro()); err != nil {
			return nil, err
		}
		return nil, w.busy(ctx, &Args{})
	})
	e, err := engine.New(ground.Store, mux, engine.Config{
		Instance: w.Name, Slots: w.Slots, TimeToLive: w.TimeToLive, Grace: w.Grace, Poll: w.Poll, OnEvent: logEvents(logLines(os.Stderr)),
	})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// tickSuffix names the files in which workers write down what they ran.
const tickSuffix = ".ticks"

// tick is the run of a job, as its handler was told about it.
type tick struct {
	job        stint.ID
	schedule   string
	nth        int64
	occurrence int64 // in microseconds
	due        int64 // likewise
}

// ticks are all runs that handlers wrote down.
func (f *Fleet) ticks() (all []tick, err error) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(f.Dir), "*"+tickSuffix))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			var t tick
			if _, err := fmt.Sscan(lines.Text(), &t.job, &t.schedule, &t.nth, &t.occurrence, &t.due); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", file, lines.Text(), err)
			}
			all = append(all, t)
		}
	}
	return all, nil
}
