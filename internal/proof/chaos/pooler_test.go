//go:build unix

package chaos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// Nobody says anything about the pooler: not that statements must not be
// prepared, and not that nobody will be rung.
func TestAFleetWorksThroughAPoolerThatSharesSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	pooler := pgtest.StartPooler(t, w.url, map[string]string{"default_pool_size": "8"})
	w.url = pooler.URL(w.url)
	l := w.load(2, 1, 0, 100*time.Millisecond)
	ground, err := chaos.Open(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer ground.Close()
	p := w.client(7)
	p.Name, p.Ground = "pooled", ground
	if _, err := p.Run(t.Context(), 500); err != nil {
		t.Error(err)
	}
	w.works()
	l.keepers[0].Process().Kill()
	t.Logf("work resumed after %v", w.recovers())
	said := w.Await("worker-2.1", event.EventTrouble, 1, time.Minute)
	l.end(time.Minute)
	if said.Doing != "listen" || !strings.Contains(said.Err, "pooler") {
		t.Errorf("the first thing that went wrong was %+v", said)
	}
	troubles := slices.DeleteFunc(w.Events("worker-2.1"), func(e chaos.Event) bool {
		late := e.Doing == "beat" && strings.Contains(e.Err, "deadline exceeded") // the machine is busy
		return e.Type != event.EventTrouble || late
	})
	if len(troubles) > 3 {
		t.Errorf("its troubles are %+v", troubles)
	}
}

func TestThroughAPoolerThatSharesSessionsEverythingIsFoundByAsking(t *testing.T) {
	atLength(t)
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	w.asking(pgtest.StartPooler(t, w.url, nil).URL(w.url))
}
