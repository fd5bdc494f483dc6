//go:build unix

package chaos

import (
	"cmp"
	"slices"
	"time"

	"github.com/stint-go/stint/internal/proof/check"
)

// Load is what ran of some jobs in a time, by the handlers' own clocks.
type Load struct {
	Most   int     // runs at once
	Used   float64 // runs at once on average
	Starts []check.Instant
}

// Load reads what ran between two instants. A run of a process that was killed ends with it, and one of
// a process that stood still ends when that began: after it the engine may have lost its place.
func (f *Fleet) Load(from, to check.Instant) Load {
	f.t.Helper()
	history, err := check.Read(f.Dir)
	if err != nil {
		f.t.Fatal(err)
	}
	stops := f.standstills()
	type turn struct {
		at   check.Instant
		more int
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
			if stop >= r.Start {
				end = min(end, stop)
			}
		}
		begin := max(r.Start, from)
		if end = min(end, to); end <= begin {
			continue
		}
		turns = append(turns, turn{begin, 1}, turn{end, -1})
		busy += end.Sub(begin)
		if r.Start >= from {
			load.Starts = append(load.Starts, r.Start)
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.more, b.more)) })
	slices.Sort(load.Starts)
	now := 0
	for _, t := range turns {
		now += t.more
		load.Most = max(load.Most, now)
	}
	load.Used = float64(busy) / float64(to.Sub(from))
	return load
}

// standstills are the instants at which each process died or was frozen.
func (f *Fleet) standstills() map[string][]check.Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string][]check.Instant{}
	for _, d := range f.done {
		if d.Does == check.Kills || d.Does == check.Freezes {
			all[d.Process] = append(all[d.Process], d.From)
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
