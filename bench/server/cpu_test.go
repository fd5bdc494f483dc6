package server

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"
)

// stat is a line of /proc/PID/stat, with times in ticks.
func stat(name string, parent, user, system, endedUser, endedSystem, started int) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "1 (%s) S %d 0 0 0 -1 0 0 0 0 0 %d %d %d %d 20 0 1 0 %d 0 0", name, parent, user, system, endedUser, endedSystem, started)}
}

func TestTheProcessorTimeOfAServerIsThatOfAllItsProcesses(t *testing.T) {
	booted := time.Unix(1_700_000_000, 0)
	machine := func() fstest.MapFS {
		return fstest.MapFS{
			"stat":     {Data: []byte("cpu 1 2 3\nbtime 1700000000\n")},
			"uptime":   {Data: []byte("1 1")},
			"50/stat":  stat("postgres", 1, 1, 2, 100, 200, 500),
			"60/stat":  stat("postgres", 50, 10, 20, 0, 0, 600),
			"61/stat":  stat("postgres", 50, 1000, 2000, 3, 4, 700),
			"70/stat":  stat("a (b) c", 61, 7, 7, 7, 7, 700),        // somebody's, not the server's
			"71/stat":  stat("postgres", 1, 90, 90, 90, 90, 700),    // of another server
			"80/stat":  {Data: []byte("80 (half a line) S 50 0 0")}, // just ending
			"self":     {Data: []byte("61")},
			"1/stat":   stat("init", 0, 9, 9, 9, 9, 1),
			"90/files": {Data: nil},
		}
	}
	for name, c := range map[string]struct {
		change  func(fstest.MapFS)
		backend int
		started time.Time
		want    time.Duration // 0 for not known
	}{
		"all of its processes":            {nil, 60, booted.Add(6 * time.Second), 3340 * tick},
		"a session that began later":      {nil, 60, booted.Add(time.Minute), 0},
		"a process that is not here":      {nil, 62, booted.Add(6 * time.Second), 0},
		"a number that is somebody's":     {nil, 70, booted.Add(7 * time.Second), 0},
		"no postgres above it":            {nil, 71, booted.Add(7 * time.Second), 0},
		"a machine that does not tell":    {func(m fstest.MapFS) { clear(m) }, 60, booted.Add(6 * time.Second), 0},
		"one that does not say when":      {func(m fstest.MapFS) { delete(m, "stat") }, 60, booted.Add(6 * time.Second), 0},
		"times that are written in words": {func(m fstest.MapFS) { m["60/stat"] = &fstest.MapFile{Data: []byte("60 (postgres) S x")} }, 60, booted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine()
			if c.change != nil {
				c.change(m)
			}
			got, known := serverCPU(m, c.backend, c.started)
			if got != c.want || known != (c.want > 0) {
				t.Errorf("got %v, %v; want %v", got, known, c.want)
			}
		})
	}
}

func TestTimeThatIsKnownOnceOnlyIsNotKnown(t *testing.T) {
	u := Counters{transaction: 10, cpu: 5, cpuKnown: true}.Since(Counters{transaction: 7})
	if u.CPUKnown || u.CPU != 0 || u.Transactions != 2 {
		t.Errorf("got %+v, want 2 transactions and no time", u)
	}
}
