//go:build unix

package chaos_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
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

// A standby that each commit waits for has all that anybody was told of: its
// promotion is an outage, and nothing else.
func TestAFailoverToASynchronousStandbyLosesNothing(t *testing.T) {
	t.Parallel()
	atLength(t)
	p := newPair(t, pgtest.Options{})
	p.primary.Synchronous(true)
	l := p.load(3, 2, 0, 100*time.Millisecond)
	p.works()
	p.enqueue("through", 0, 6, func(int) chaos.Args { return chaos.Args{Work: 15000} })
	time.Sleep(2 * time.Second)
	// Nothing is noted, so the judge lets nothing be repeated.
	chaos.FailOver(p.primary, p.standby, p.address, func() { time.Sleep(6 * time.Second) })
	took := p.recovers()
	t.Logf("work resumed after %v", took)
	if took > pace.Of(5*time.Second) {
		t.Errorf("work resumed %v after the standby took over, more than 5s", took)
	}
	l.end(time.Minute)
	if n := p.number(`select count(*) from stint.engine_history where ended is not null and why <> 'left'`); n > 0 {
		t.Errorf("%d engines were buried", n)
	}
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
	if took > pace.Of(5*time.Second) {
		t.Errorf("work resumed %v after the standby took over, more than 5s", took)
	}
	p.primary.Start() // where nobody finds it
	had(p.on(p.primary))
	undone := l.end(time.Minute).Undone
	if undone.Jobs == 0 || undone.Claims == 0 || undone.Outcomes == 0 || undone.Runs == 0 {
		t.Errorf("not everything that can be lost was: %+v", undone)
	}
}

// A server whose synchronous_commit is off answers before it has written, and forgets
// in a crash what was enqueued in its last moments. What an engine was told it keeps: no
// claim, and so no run, and no outcome is lost, and everything else goes on.
func TestAServerThatAnswersBeforeItWritesLosesWhatWasEnqueuedJustThenAndNothingElse(t *testing.T) {
	t.Parallel()
	atLength(t)
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{
		"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB", "wal_buffers": "64MB", "autovacuum": "off",
	}})
	address := chaos.NewProxy(t, server.Addr())
	w := newWorld(t, address.URL(server.New(t)))
	direct := server.URL(databaseOf(t, w.url))
	l := w.load(3, 2, 0, 200*time.Millisecond)
	w.works()
	w.enqueue("long", 0, 20, func(int) chaos.Args { return chaos.Args{Work: 3000} })
	time.Sleep(time.Second)
	frozen := make([]*chaos.Process, len(l.keepers))
	for i, k := range l.keepers { // engines wait for the disk, and all before them is on it then
		frozen[i] = k.Process()
		frozen[i].Freeze()
	}
	time.Sleep(time.Second)

	over := w.CutOff("")
	address.Move("")
	cut := time.Now()
	before := w.open(direct)
	w.outlive(before, cut)
	kept := w.Forgets(t.Context(), before)
	server.Restart(pgtest.Immediate)
	kept(w.open(direct))
	address.Move(server.Addr())
	over()
	for _, p := range frozen {
		p.Thaw()
	}
	took := w.recovers()
	t.Logf("work resumed after %v", took)
	if took > pace.Of(5*time.Second) {
		t.Errorf("work resumed %v after the server was back, more than 5s", took)
	}
	if undone := l.end(time.Minute).Undone; undone.Outcomes > 0 || undone.Runs > 0 {
		t.Errorf("what engines were told is lost: %+v", undone)
	}
}

// outlive waits until the server has ended all sessions that began before.
func (w *world) outlive(g *chaos.Ground, before time.Time) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var left int
		err := g.Pool.QueryRow(w.t.Context(), `select count(*) from pg_stat_activity where backend_type = 'client backend' and backend_start < $1`, before).Scan(&left)
		if err == nil && left == 0 {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%d sessions do not end, %v", left, err)
		}
	}
}
