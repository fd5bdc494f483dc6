//go:build unix

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/stint-go/stint/event"
)

// vitals is the event of a worker that says what it uses.
const vitals event.EventType = "vitals"

// Use is what a process uses at a moment.
type Use struct {
	At         time.Time `json:"-"`
	Goroutines int       `json:"goroutines"`
	Heap       uint64    `json:"heap"`     // bytes that a collection of garbage left
	Resident   uint64    `json:"resident"` // bytes of memory, with what SQLite has beside the heap; 0 where the system does not tell
	Files      int       `json:"files"`    // open ones, connections included; 0 where the system does not tell
}

// sayUse tells each second what this process uses.
func sayUse(ctx context.Context, log func(Event)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		files, _ := os.ReadDir("/proc/self/fd")
		log(Event{At: time.Now(), Type: vitals, Use: &Use{
			Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc, Resident: resident(), Files: len(files),
		}})
	}
}

// String is the use in words.
func (u Use) String() string {
	return fmt.Sprintf("%d goroutines, a heap of %d KiB, %d KiB of memory, %d files", u.Goroutines, u.Heap>>10, u.Resident>>10, u.Files)
}

// resident is the memory of this process, in bytes; 0 where there is no /proc.
func resident() uint64 {
	text, _ := os.ReadFile("/proc/self/statm")
	var all, here uint64
	fmt.Sscan(string(text), &all, &here)
	return here * uint64(os.Getpagesize())
}

// Uses are what a worker with Vitals said that it used, each second.
func (f *Fleet) Uses(process string) (all []Use) {
	f.t.Helper()
	for _, e := range f.Events(process) {
		if e.Type == vitals {
			use := *e.Use
			use.At = e.At
			all = append(all, use)
		}
	}
	return all
}

// typical is the median of each that was used in a time. What leaks raises it, and
// what is needed or missing for a moment does not.
func typical(all []Use) Use {
	return Use{
		Goroutines: median(all, func(u Use) int { return u.Goroutines }),
		Heap:       median(all, func(u Use) uint64 { return u.Heap }),
		Resident:   median(all, func(u Use) uint64 { return u.Resident }),
		Files:      median(all, func(u Use) int { return u.Files }),
	}
}

func median[N cmp.Ordered](all []Use, of func(Use) N) N {
	list := make([]N, len(all))
	for i, u := range all {
		list[i] = of(u)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// Flat fails the test where a worker with Vitals used more and more: the last third
// of its life is compared with the third before. The first is for what it needs
// once. What is allowed is what its work may need more of at one time; over a long
// time, in which each third has all kinds of moments, that is little.
func (f *Fleet) Flat(process string) string {
	f.t.Helper()
	all := f.Uses(process)
	third := len(all) / 3
	if third == 0 {
		f.t.Errorf("%s said %d times what it used", process, len(all))
		return ""
	}
	before, behind := typical(all[third:2*third]), typical(all[2*third:])
	what := fmt.Sprintf("%s told for %d seconds what it used: as a rule %v, at last %v", process, len(all), before, behind)
	goroutines, files := 50, 20
	if len(all) >= 600 {
		goroutines, files = 10, 5
	}
	if behind.Goroutines > before.Goroutines+goroutines || behind.Files > before.Files+files ||
		behind.Heap > before.Heap*3/2+8<<20 || behind.Resident > before.Resident*5/4+32<<20 {
		f.t.Error("it grew: " + what)
	}
	return what
}
