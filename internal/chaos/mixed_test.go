//go:build unix

package chaos_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/chaos"
	"github.com/stint-go/stint/internal/pgtest"
)

// minutes is how long a run makes trouble: what a variable says, or else a moment.
func minutes(t *testing.T, variable string, moment time.Duration) time.Duration {
	text := os.Getenv(variable)
	if text == "" {
		return moment
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n * float64(time.Minute))
}

func TestMixedTroubleLosesAndDoublesNothing(t *testing.T) {
	const (
		ttl     = 3 * time.Second
		workers = 4
		clients = 3
	)
	server := pgtest.Start(t, pgtest.Options{Fsync: true})
	w := newWorld(t, server.New(t))
	m := &chaos.Mixed{
		T: t, Fleet: w.Fleet, Rand: w.dice(77), Server: server, Admin: w.pool, Clients: w.behind(), TTL: ttl,
		People: &chaos.People{Fleet: w.Fleet, Store: w.store},
	}
	for i := range workers {
		proxy := w.behind()
		m.Workers = append(m.Workers, chaos.Kept{Proxy: proxy, Keeper: w.Keep(chaos.Worker{
			Name: fmt.Sprintf("worker-%d", i+1), DB: proxy.URL(w.url), Slots: 10, TimeToLive: ttl, Grace: 5 * time.Second,
		})})
	}
	ctx, cancel := context.WithCancel(t.Context())
	store, pool := w.connect(m.Clients.URL(w.url))
	var producing sync.WaitGroup
	pause := 300 * time.Millisecond
	if long() {
		pause *= 2 // the judge holds the whole history in memory
	}
	for i := range clients {
		p := w.client(i)
		p.Ground, p.Pause, p.Slow, p.Varied = chaos.NewGround(store, pool), pause, true, true
		producing.Go(func() {
			if _, err := p.Run(ctx, 1<<30); err != nil {
				t.Error(err)
			}
		})
	}
	w.resumes()

	m.Run(t.Context(), minutes(t, "STINT_CHAOS_MINUTES", 20*time.Second))
	calm := time.Now()
	cancel()
	producing.Wait()
	w.Drain(t.Context(), w.store, 30*time.Second)
	t.Logf("everything was done %v after the trouble ended", time.Since(calm))
	lives := 0
	for _, k := range m.Workers {
		k.Stop()
		lives += k.Lives
	}
	buried := w.Burials(t.Context(), w.ground)
	report := w.Judge(t.Context(), w.ground)
	t.Logf("seed %d: %s; %d lives of %d workers, %d engines buried; %v", w.seed, m.Done(), lives, workers, buried, report)
}
