package pgtest

import (
	"errors"
	"sync"
	"testing"
)

// clusters are those that the tests of this process share, one for each installation in use.
var clusters struct {
	mu     sync.Mutex // guards the map only; nobody starts or stops a server under it
	starts map[Installation]func() (*Server, error)
}

// Shared returns the cluster that the tests of this process share, of one major version or, for 0, the newest one
// found. The first call starts it.
func Shared(t testing.TB, major int) *Server {
	t.Helper()
	server, err := sharedStart(Require(t, major))()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// sharedStart returns the function that starts the cluster of an installation when it is first called.
func sharedStart(installation Installation) func() (*Server, error) {
	clusters.mu.Lock()
	defer clusters.mu.Unlock()
	if start, ok := clusters.starts[installation]; ok {
		return start
	}
	start := sync.OnceValues(func() (*Server, error) { return open(installation, Options{}) })
	if clusters.starts == nil {
		clusters.starts = make(map[Installation]func() (*Server, error))
	}
	clusters.starts[installation] = start
	return start
}

// stopShared stops the shared clusters. Tests may start them anew afterwards.
func stopShared() error {
	clusters.mu.Lock()
	starts := clusters.starts
	clusters.starts = nil
	clusters.mu.Unlock()
	var errs []error
	for _, start := range starts {
		if server, err := start(); err == nil { // A start that failed has already failed a test.
			errs = append(errs, server.close())
		}
	}
	return errors.Join(errs...)
}
