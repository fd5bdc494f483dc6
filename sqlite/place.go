package sqlite

import (
	"os"
	"sync"
	"time"

	"github.com/stint-go/stint/store"
)

// places knows which engines live without asking the database, which a user's
// transaction may keep from being written to for long.
//
// An engine's place is one byte of a file beside the database, at the offset
// of its token; nothing is ever written there. An engine that joins locks the byte,
// and the kernel unlocks it when the process dies, however it dies:
//
//	exclusive   the process lives and vouches for the engine
//	shared      the process lives, and has let go: the engine's beats decide
//	none        it is gone
//
// Where the system or the file system has no such locks, engines join without
// one, and beats decide for all of them. The file must not be deleted while
// engines run: those that come later would not see the locks.
type livenessLocks struct {
	path string // empty for a database in memory

	mu   sync.Mutex // guards what follows; nothing under it waits
	file *os.File
	mine map[store.EngineID]lock // of engines that joined by this store
}

// lock is a way in which a byte is locked.
type lock int

const (
	unlocked lock = iota
	shared
	exclusive
)

// placesSuffix makes the file's name of the database's.
const placesSuffix = "-engines"

// openLocked opens the file, if it can be.
func (p *livenessLocks) openLocked() bool {
	if p.file != nil || p.path == "" {
		return p.file != nil
	}
	file, err := os.OpenFile(p.path+placesSuffix, os.O_RDWR|os.O_CREATE, 0o644)
	if db, err := os.Stat(p.path); err == nil {
		shareAs(p.path+placesSuffix, db) // users of the one may use the other
	}
	if err != nil {
		if file, err = os.Open(p.path + placesSuffix); err != nil {
			return false
		}
	}
	p.file = file
	return true
}

// take takes the place of an engine, and reports whether it could.
func (p *livenessLocks) take(engine store.EngineID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if engine < 0 || p.mine[engine] != unlocked || !p.openLocked() || setLock(p.file, int64(engine), exclusive) != nil {
		return false
	}
	if p.mine == nil {
		p.mine = map[store.EngineID]lock{}
	}
	p.mine[engine] = exclusive
	return true
}

// change makes the lock on a place that this store has another one.
func (p *livenessLocks) change(engine store.EngineID, to lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mine[engine] == unlocked {
		return
	}
	_ = setLock(p.file, int64(engine), to) // to less: it cannot be refused
	if p.mine[engine] = to; to == unlocked {
		delete(p.mine, engine)
	}
}

// of returns how an engine's place is locked, by any process. What cannot be found
// out counts as shared: beats decide.
func (p *livenessLocks) of(engine store.EngineID) lock {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.mine[engine]; l != unlocked {
		return l
	}
	if engine < 0 || !p.openLocked() {
		return shared
	}
	l, err := seeLock(p.file, int64(engine))
	if err != nil {
		return shared
	}
	return l
}

// close frees all places.
func (p *livenessLocks) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file := p.file
	p.file, p.mine, p.path = nil, nil, ""
	if file == nil {
		return nil
	}
	return file.Close()
}

var _ store.LivenessLocker = (*Store)(nil)

// Vouches implements [store.LivenessLocker]: for as long as the lock is held, which is asked again each time.
func (s *Store) Vouches(engine store.EngineID, _ time.Time) time.Time {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if s.places.mine[engine] != exclusive {
		return time.Time{}
	}
	return time.Now().Add(24 * time.Hour)
}

// Release implements [store.LivenessLocker].
func (s *Store) Release(engine store.EngineID) { s.places.change(engine, shared) }
