package cli

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint/dashboard/guard"
)

func TestAFloodOfRefusedRequestsLeavesAFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &refusals{log: slog.New(slog.NewTextHandler(&out, nil))}
		r := httptest.NewRequest("POST", "/jobs/7/cancel?token=secret", nil)
		for range 100_000 {
			l.on(r, guard.Identity{}, 403, "this is for the role operator")
		}
		time.Sleep(time.Minute)
		l.on(r, guard.Identity{Name: "ann"}, 403, "this is for the role admin")
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != refusalsMost+2 {
			t.Fatalf("there are %d lines:\n%s", len(lines), out.String())
		}
		for i, want := range map[int]string{
			0:                "status=403 why=\"this is for the role operator\" method=POST path=/jobs/7/cancel from=192.0.2.1:1234",
			refusalsMost:     "count=99990",
			refusalsMost + 1: "who=ann",
		} {
			if !strings.Contains(lines[i], want) {
				t.Errorf("line %d is %s, want %s", i, lines[i], want)
			}
		}
		if strings.Contains(out.String(), "secret") {
			t.Error("the log has the token of a request")
		}
	})
}

func TestWhatAClientWritesIsCutInTheLog(t *testing.T) {
	var out bytes.Buffer
	l := &refusals{log: slog.New(slog.NewTextHandler(&out, nil))}
	r := httptest.NewRequest("GET", "/", nil)
	r.URL.Path = strings.Repeat("ä", 10_000) + "\nlevel=ERROR"
	l.on(r, guard.Identity{}, 421, strings.Repeat("x", 10_000))
	if text := out.String(); len(text) > 1500 || strings.Count(text, "\n") != 1 {
		t.Errorf("there are %d bytes in the log: %.200s", len(text), text)
	}
}
