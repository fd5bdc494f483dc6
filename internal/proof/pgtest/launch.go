package pgtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// open creates a cluster and starts its server.
func open(installation Installation, options Options) (*Server, error) {
	s := &Server{installation: installation, durable: options.Fsync, space: options.Space, password: rand.Text()}
	return s, s.setUp(func() error { return s.initialise(options) })
}

// setUp makes a run directory, has its data directory filled, and starts the server there. Nothing is left when that
// fails.
func (s *Server) setUp(fill func() error) (err error) {
	if s.dir, err = newRunDir(s.durable); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("pgtest: %v: %w", s.installation, err), s.close())
		}
	}()
	if s.watchdog, err = newWatchdog(s.dir.path); err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	if err := s.createLog(); err != nil {
		return err
	}
	if s.space > 0 {
		if err := s.dir.bound(s.space); err != nil {
			return err
		}
	}
	if err := fill(); err != nil {
		return err
	}
	return s.launchFirst()
}

// close stops the server the quickest way and removes all that it had.
func (s *Server) close() error {
	s.verb.Lock()
	defer s.verb.Unlock()
	err := s.halt(Immediate)
	releaseSharedMemory(s.dir.pidFile())
	err = errors.Join(err, s.dir.remove())
	if s.watchdog != nil {
		err = errors.Join(err, s.watchdog.dismiss())
	}
	return err
}

// halt stops the server if it runs. The caller holds the verb.
func (s *Server) halt(mode Mode) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.stop(mode); err != nil {
		return fmt.Errorf("stop (%s): %w", mode, err)
	}
	s.process = nil
	return nil
}

// launchFirst starts a new server on a port of its choice. Between the choice and the start somebody else may take the
// port; then it takes another one.
func (s *Server) launchFirst() error {
	for range 10 {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.port = port
		if err = s.attempt(); err == nil {
			return nil
		}
		if !strings.Contains(s.LogTail(0), "Address already in use") {
			return err
		}
	}
	return errors.New("found no port to listen on in ten attempts")
}

// launch starts a server that has run before. Two obstacles pass by themselves: the backends of a killed server need a
// moment to notice and to let go of its memory, and its port may be in use by a connection that is being closed.
func (s *Server) launch() error {
	if s.process != nil && !s.process.ended() {
		return nil
	}
	s.process = nil
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		mark := s.logSize()
		err := s.attempt()
		if err == nil || time.Since(begin) > startLimit {
			return err
		}
		said := s.LogTail(mark)
		if !strings.Contains(said, "still in use") && !strings.Contains(said, "Address already in use") {
			return err
		}
	}
}

func (s *Server) attempt() error {
	mark := s.logSize()
	process, err := startServer(s.installation, s.dir, s.port)
	if err != nil {
		return fmt.Errorf("start: %w\n%s", err, s.LogTail(mark))
	}
	s.process = process
	return nil
}
