package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func TestWhatIsSaidOfAQueueAndAStateWins(t *testing.T) {
	const day = 24 * time.Hour
	r := store.Retention{
		KeepFor: store.KeepFor{Failed: 30 * day},
		Queues: map[string]store.KeepFor{
			"mail":  {Completed: time.Hour},
			"audit": {All: store.Forever, Cancelled: day},
		},
	}
	for _, c := range []struct {
		queue string
		state stint.State
		want  time.Duration
	}{
		{"default", stint.Completed, 5 * day}, {"default", stint.Failed, 30 * day}, {"default", stint.Cancelled, 5 * day},
		{"mail", stint.Completed, time.Hour}, {"mail", stint.Failed, 30 * day}, {"Mail", stint.Completed, 5 * day},
		{"audit", stint.Completed, store.Forever}, {"audit", stint.Failed, store.Forever}, {"audit", stint.Cancelled, day},
	} {
		if got := r.Of(c.queue, c.state); got != c.want {
			t.Errorf("%s of %s are kept for %v, want %v", c.state, c.queue, got, c.want)
		}
	}
	if got, want := r.Ages(), []time.Duration{time.Hour, day, 5 * day, 30 * day}; !slices.Equal(got, want) {
		t.Errorf("the ages are %v, want %v", got, want)
	}
	if got := (store.Retention{KeepFor: store.KeepFor{All: store.Forever}}).Shortest(); got != store.Forever {
		t.Errorf("what is kept for ever is kept for %v", got)
	}
}

func TestARetentionIsReadAsItIsWritten(t *testing.T) {
	var r store.Retention
	lines := []string{"* 30d", "failed forever", "a b:c:completed 1h", "mail:* 90s", "mail:cancelled 2w"}
	for _, line := range lines {
		i := strings.LastIndexByte(line, ' ')
		if err := r.Set(line[:i], line[i+1:]); err != nil {
			t.Errorf("%q gives %v", line, err)
		}
	}
	var got []string
	for _, line := range r.Lines() {
		got = append(got, line.Name+" "+line.Text)
	}
	if diff := cmp.Diff([]string{"* 30d", "failed forever", "a b:c:completed 1h", "mail:* 1m30s", "mail:cancelled 2w"}, got); diff != "" {
		t.Errorf("it says (-want +got):\n%s", diff)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"lost 5d", ":failed 5d", "*:failed 5d", "mail: 5d", "mail:x 5d", "failed", "failed 5", "failed -5d", "failed 0s", "failed 999ms", "failed never"} {
		name, text, _ := strings.Cut(bad, " ")
		if err := r.Set(name, text); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, bad := range []store.Retention{{KeepFor: store.KeepFor{All: 1}}, {Queues: map[string]store.KeepFor{"\n": {All: time.Hour}}}} {
		if err := bad.Check(); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%+v gives %v", bad, err)
		}
	}
}
