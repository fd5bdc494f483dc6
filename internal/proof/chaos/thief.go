//go:build unix

package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Thief takes a server's connections, and gives them back.
type Thief struct {
	url string

	mu    sync.Mutex
	taken []*pgx.Conn
}

// NewThief makes one who connects by a URL.
func NewThief(url string) *Thief { return &Thief{url: url} }

// Take takes all connections that are free, and says how many it has.
func (th *Thief) Take(ctx context.Context) int {
	th.mu.Lock()
	defer th.mu.Unlock()
	for {
		conn, err := pgx.Connect(ctx, th.url)
		if err != nil {
			return len(th.taken)
		}
		th.taken = append(th.taken, conn)
	}
}

// Keep takes all connections that are free, and again every so often what
// somebody else let go of, until they are given back.
func (th *Thief) Keep(ctx context.Context, every time.Duration) (giveBack func()) {
	th.Take(ctx)
	taking, enough := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for taking.Err() == nil {
			th.Take(taking)
			select {
			case <-taking.Done():
			case <-time.After(every):
			}
		}
	})
	return func() {
		enough()
		all.Wait()
		th.GiveBack()
	}
}

// GiveBack gives all of them back.
func (th *Thief) GiveBack() {
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, conn := range th.taken {
		_ = conn.Close(context.Background())
	}
	th.taken = nil
}
