package pgtest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// LogTail returns the last lines of what the server has written to its log from an offset on.
func (s *Server) LogTail(from int64) string {
	const limit = 50
	text, err := os.ReadFile(s.dir.log())
	if err != nil {
		return err.Error()
	}
	lines := slices.Collect(strings.Lines(string(text[min(int(from), len(text)):])))
	return strings.Join(lines[max(0, len(lines)-limit):], "")
}

func (s *Server) logSize() int64 {
	info, err := os.Stat(s.dir.log())
	if err != nil {
		return 0 // The server has not started yet.
	}
	return info.Size()
}

func (s *Server) printLogOnFailure(t testing.TB, from int64) {
	t.Helper()
	if tail := s.LogTail(from); t.Failed() && tail != "" {
		t.Logf("the end of the log of %v:\n%s", s.installation, tail)
	}
}
