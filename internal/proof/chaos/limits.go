//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint/internal/proof/check"
)

// Load is what ran of some jobs in a time, by the handlers' own clocks.
type Load struct {
	Most   int      // runs at once
	Crowd  []string // what these were, when there were so many for the first time
	Used   float64  // runs at once on average
	Starts []check.Instant
}

// waking is how long a process that stood still takes to go on with what it was about to do.
const waking = 100 * time.Millisecond

// Load reads what ran between two instants. A run of a process that was killed ends with it, and one of
// a process that stood still ends when that began: after it the engine may have lost its place. One that
// started after a process was told to stand still, and before it did, does not count.
func (f *Fleet) Load(from, to check.Instant) Load {
	f.t.Helper()
	history, err := check.Read(f.Dir)
	if err != nil {
		f.t.Fatal(err)
	}
	stops, woke := f.standstills(), map[check.Disturbance]bool{}
	type turn struct {
		at   check.Instant
		more int
		run  *check.Run
	}
	var (
		load  Load
		turns []turn
		busy  time.Duration
	)
	for i := range history.Runs {
		r := &history.Runs[i]
		end := cmp.Or(r.End, to)
		for _, stop := range stops[history.Processes[r.Process].Name] {
			over := cmp.Or(stop.To, stop.From)
			if late := r.Start > over && r.Start <= over.Add(waking) && !woke[stop]; late || r.Start <= over {
				end = min(end, stop.From)
				woke[stop] = woke[stop] || late
			}
		}
		begin := max(r.Start, from)
		if end = min(end, to); end <= begin {
			continue
		}
		turns = append(turns, turn{begin, 1, r}, turn{end, -1, r})
		busy += end.Sub(begin)
		if r.Start >= from {
			load.Starts = append(load.Starts, r.Start)
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.more, b.more)) })
	slices.Sort(load.Starts)
	running := map[*check.Run]bool{}
	for _, t := range turns {
		if t.more < 0 {
			delete(running, t.run)
			continue
		}
		running[t.run] = true
		if len(running) <= load.Most {
			continue
		}
		load.Most, load.Crowd = len(running), nil
		for r := range running {
			load.Crowd = append(load.Crowd, fmt.Sprintf("%s: job %d, attempt %d, since %v, for %v", history.Processes[r.Process].Name, r.Job, r.Attempt, t.at.Sub(r.Start), r.End.Sub(r.Start)))
		}
	}
	load.Used = float64(busy) / float64(to.Sub(from))
	return load
}

// standstills are the times from which each process was dead or, to their end, frozen.
func (f *Fleet) standstills() map[string][]check.Disturbance {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string][]check.Disturbance{}
	for _, d := range f.done {
		if d.Does == check.Kills || d.Does == check.Freezes {
			all[d.Process] = append(all[d.Process], d)
		}
	}
	return all
}

// MostWithin is the greatest number of starts in any time of a length.
func (l Load) MostWithin(d time.Duration) (most int) {
	first := 0
	for i, at := range l.Starts {
		for at.Sub(l.Starts[first]) >= d {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
