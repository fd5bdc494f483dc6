package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// clockFile is the file in the run directory that says how far a server's clock is ahead.
const clockFile = "clock"

// fakeTimes are where packages put libfaketime: Debian by architecture, Red Hat, Homebrew.
var fakeTimes = []string{"/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib*/faketime/libfaketimeMT.so.1", "/usr/local/lib/faketime/libfaketimeMT.so.1"}

// fakeTime finds the library that comes between a program and the system's clock.
func fakeTime() (string, bool) {
	for _, pattern := range fakeTimes {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0], true
		}
	}
	return "", false
}

// clockEnv has a server read its time with an offset, afresh each time. Its monotonic clock is left alone: no system sets that.
// The library opens the file whenever it is asked, also by a signal handler that came amid an allocation: so once in some
// minutes under load a session of such a server dies of a broken heap ("malloc assertion failure"), and the server recovers
// as from any crash.
func (d *runDir) clockEnv() []string {
	library, found := fakeTime()
	if !found || !d.hasClock() {
		return nil
	}
	return []string{
		"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + filepath.Join(d.path, clockFile), "FAKETIME_NO_CACHE=1",
		"DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1",
	}
}

// setClock writes the offset as a whole: the server may read it at any moment.
func (d *runDir) setClock(ahead time.Duration) error {
	path := filepath.Join(d.path, clockFile)
	if err := writeFile(path+".new", fmt.Sprintf("%+.3f\n", ahead.Seconds())); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// hasClock tells whether the server's clock can be set.
func (d *runDir) hasClock() bool {
	_, err := os.Stat(filepath.Join(d.path, clockFile))
	return err == nil
}

// SetClock puts the clock of a server that was started with Options.Clock ahead of this machine's, or behind it if that is
// negative. It jumps there at once.
func (s *Server) SetClock(ahead time.Duration) {
	s.do("SetClock", func() error { return s.dir.setClock(ahead) })
}
