//go:build unix

package pgtest

import "testing"

func TestAServerThatEndedByItselfCanBeStarted(t *testing.T) {
	server := Start(t, Options{})
	if err := server.process.signal(stopSignals[Fast]); err != nil {
		t.Fatal(err)
	}
	first := server.process
	eventually(t, "the server is another one", func() bool {
		server.Start() // which does nothing until the first one has ended
		return server.process != first
	})
	value(t, server.URL("postgres"), "select '1'")
}
