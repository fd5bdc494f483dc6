package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

// lineOf is what the log says of an event.
func lineOf(e stint.Event) string {
	var out bytes.Buffer
	newEventLog(newLogger(&out, slog.LevelInfo, "text"), slog.LevelDebug).on(e)
	return out.String()
}

func TestTroubleWithAJobIsNotSaidToBeTriedAgain(t *testing.T) {
	line := lineOf(stint.Event{
		Type: stint.EventTrouble, Time: time.Now(), Job: &stint.Job{ID: 7, Kind: "sh"},
		Doing: "call the finally hook of sh", Err: errors.New("no mail"),
	})
	if !strings.Contains(line, `msg="cannot call the finally hook of sh" error="no mail" job=7 kind=sh`) {
		t.Errorf("the line is %s", line)
	}
}

func TestAJobThatFailedForGoodIsLoggedOnce(t *testing.T) {
	job := &stint.Job{ID: 7, Kind: "sh"}
	lost := &stint.Execution{Outcome: stint.OutcomeLost, Final: true, Reason: "lost"}
	if line := lineOf(stint.Event{Type: stint.EventFailed, Job: job, Execution: lost}); !strings.Contains(line, `level=ERROR msg="job failed" job=7`) {
		t.Errorf("of a job that was lost for good it says %q", line)
	}
	ended := &stint.Execution{Outcome: stint.OutcomeFailed, Final: true, Slot: 1}
	if line := lineOf(stint.Event{Type: stint.EventEnded, Job: job, Execution: ended}); !strings.Contains(line, `level=ERROR msg="job failed" job=7`) {
		t.Errorf("of a job that failed here it says %q", line)
	}
	if line := lineOf(stint.Event{Type: stint.EventFailed, Job: job, Execution: ended}); line != "" {
		t.Errorf("and then once more %q", line)
	}
}

func TestAnUnknownOperationIsRefusedWithThoseThereAre(t *testing.T) {
	known := []stint.Declaration{{Name: "invoice.send"}, {Name: "invoice.print"}, {Name: "invoices"}, {Name: "sh"}}
	for kind, want := range map[string]string{
		"invoice.send": "",
		"invoice.typo": "the operations of invoice are invoice.print, invoice.send; --force enqueues it all the same",
		"invoice":      "the operations of invoice are invoice.print, invoice.send; --force enqueues it all the same",
		"receipt.typo": "known are invoice.print, invoice.send, invoices, sh; --force enqueues it all the same",
	} {
		got := ""
		if err := knows(known, kind); err != nil {
			hinted, _ := errors.AsType[*hintedError](err)
			got = hinted.hint
		}
		if got != want {
			t.Errorf("%s: the hint is %q, want %q", kind, got, want)
		}
	}
}
