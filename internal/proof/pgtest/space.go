package pgtest

import (
	"errors"
	"fmt"
	"os"
)

// errNoSpace says that this machine or this user cannot have a file system of a given size.
var errNoSpace = errors.New("cannot mount a small file system for the server")

// CanBound tells whether servers can have Options.Space here.
func CanBound() bool {
	dir, err := os.MkdirTemp("", runPrefix)
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	defer unmount(dir)
	return mountMemory(dir, 1<<20) == nil
}

// bound gives the data directory a file system of so many bytes, in memory.
func (d *runDir) bound(bytes int64) error {
	if err := os.Mkdir(d.data(), 0o700); err != nil {
		return err
	}
	if err := mountMemory(d.data(), bytes); err != nil {
		return fmt.Errorf("%w: %w", errNoSpace, err)
	}
	return giveToServer(d.data())
}

// Fill leaves no room on the file system of a server that was started with Options.Space.
func (s *Server) Fill() {
	s.own("Fill").Helper()
	var err error
	for range 100 { // it may grow between the two
		var used int64
		if used, err = usedOf(s.dir.data()); err == nil {
			err = resize(s.dir.data(), used)
		}
		if err == nil {
			return
		}
	}
	s.t.Errorf("pgtest: fill: %v", err)
}

// Empty gives the room back that [Server.Fill] took.
func (s *Server) Empty() {
	s.own("Empty").Helper()
	if err := resize(s.dir.data(), s.space); err != nil {
		s.t.Errorf("pgtest: empty: %v", err)
	}
}
