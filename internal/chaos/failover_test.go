//go:build unix

package chaos_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/chaos"
	"github.com/stint-go/stint/internal/pgtest"
)

// pair is a server with a standby, behind an address that a failover moves.
type pair struct {
	*world
	address          *chaos.Proxy
	primary, standby *pgtest.Server
}

func newPair(t *testing.T, options pgtest.Options) *pair {
	t.Helper()
	primary := pgtest.Start(t, options)
	address := chaos.NewProxy(t, primary.Addr())
	p := &pair{address: address, primary: primary, world: newWorld(t, address.URL(primary.New(t)))}
	p.standby = primary.Standby(t)
	return p
}

// on opens the database on one of the servers, past the address.
func (p *pair) on(s *pgtest.Server) *chaos.Ground {
	p.t.Helper()
	return p.open(s.URL(databaseOf(p.t, p.url)))
}

// databaseOf is the name of a URL's database.
func databaseOf(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// failOver has the standby take the primary's place.
func (p *pair) failOver(between func()) {
	p.t.Helper()
	over := p.CutOff("")
	chaos.FailOver(p.primary, p.standby, p.address, between)
	over()
}

// atLength skips what takes long where that is not asked for.
func atLength(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes longer than ten seconds")
	}
}

// A standby that each commit waits for has all that anybody was told of: its
// promotion is an outage, and nothing else.
func TestAFailoverToASynchronousStandbyLosesNothing(t *testing.T) {
	t.Parallel()
	atLength(t)
	p := newPair(t, pgtest.Options{})
	p.primary.Synchronous(true)
	l := p.load(3, 2, 3*time.Second, 100*time.Millisecond)
	p.works()
	time.Sleep(2 * time.Second)
	p.failOver(func() {})
	took := p.recovers()
	t.Logf("work resumed after %v", took)
	if took > 5*time.Second {
		t.Errorf("work resumed %v after the standby took over, more than 5s", took)
	}
	l.end(time.Minute)
}

// A standby that lags loses what it had not yet, and gives ids and positions
// again. Nothing else is lost, and what engines still know of what was is
// recorded for nobody.
func TestAFailoverToAStandbyThatLagsLosesWhatTheServerLostAndNothingElse(t *testing.T) {
	t.Parallel()
	atLength(t)
	p := newPair(t, pgtest.Options{})
	l := p.load(3, 2, 0, 50*time.Millisecond)
	p.works()
	p.enqueue("long", 0, 20, func(int) chaos.Args { return chaos.Args{Work: 3000} })
	time.Sleep(time.Second)
	p.standby.Detach()
	time.Sleep(1500 * time.Millisecond)
	var had func(*chaos.Ground)
	p.failOver(func() { had = p.FailedOver(t.Context(), p.on(p.standby)) })
	took := p.recovers()
	t.Logf("work resumed after %v", took)
	if took > 5*time.Second {
		t.Errorf("work resumed %v after the standby took over, more than 5s", took)
	}
	p.primary.Start() // where nobody finds it
	had(p.on(p.primary))
	undone := l.end(time.Minute).Undone
	if undone.Jobs == 0 || undone.Claims == 0 || undone.Outcomes == 0 || undone.Runs == 0 {
		t.Errorf("not everything that can be lost was: %+v", undone)
	}
}
