//go:build unix

package chaos_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
)

// Random graphs of jobs, of which some fail or are cancelled, and wide joins run while engines are killed and sessions ended: no
// job begins before what it needs has ended as it wants, each does what that comes to, and no flow stands still.
func TestFlowsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	keepers := w.keepFour(20)
	dice, client := w.dice(7), stint.NewClient(w.store)
	var flows []stint.ID
	const open = `select count(*) from stint.waiting w join stint.flows f on f.flow = w.job`
	rounds, wide := jobs(t, 10), 100
	left := time.Now().Add(pace.Of(3 * time.Minute))
	if rounds > 10 {
		left, wide = time.Now().Add(time.Duration(rounds)*pace.Of(time.Minute)), 10_000
	}
	for round := 0; round < rounds || w.number(open) > 0; round++ {
		for i := range 20 {
			if round >= rounds {
				break
			}
			g := graph{world: w, name: fmt.Sprintf("flow-%d-%d", round, i), dice: dice}
			if i == 0 {
				g.join(wide)
			} else {
				g.random(2 + dice.IntN(12))
			}
			flows = append(flows, g.enqueue(client))
		}
		if time.Now().After(left) {
			t.Fatalf("%d flows stand still", w.number(open))
		}
		keepers[dice.IntN(len(keepers))].Process().Kill()
		if round%4 == 1 {
			id := flows[dice.IntN(len(flows))]
			w.Cancels(id)
			_, _ = client.Cancel(t.Context(), id) // its session may be ended
		}
		w.endSessions(200 * time.Millisecond)
	}
	stopAll(keepers)
	w.apart()
	count := map[string]int{}
	for _, outcome := range w.outcomes() {
		count[outcome]++
	}
	t.Log(count)
}

// graph is a flow that is being made.
type graph struct {
	*world
	name  string
	dice  *rand.Rand
	wide  int // how many the last one needs; 0 for a random graph
	flow  *stint.Flow
	nodes []*stint.Node
	keys  []string
}

// add adds a job that needs others, and of which one in eight fails for good.
func (g *graph) add(opts ...stint.Option) *stint.Node {
	if g.flow == nil {
		g.flow = stint.NewFlow(g.name)
	}
	args := chaos.Args{Key: fmt.Sprintf("%s-%d", g.name, len(g.nodes)), Work: g.dice.IntN(300) / (1 + g.wide/100)}
	opts = append(opts, stint.Retry(retry.Fixed(4, 20*time.Millisecond)), stint.MaxLosses(1000))
	if g.dice.IntN(8) == 0 {
		args.Fail = 10
	}
	n := chaos.Kind.Add(g.flow, "", args, opts...)
	g.nodes, g.keys = append(g.nodes, n), append(g.keys, args.Key)
	return n
}

func (g *graph) random(n int) {
	wants := []func(...*stint.Node) stint.Option{stint.Needs, stint.Needs, stint.NeedsEnd, stint.NeedsFailure}
	for range n {
		var opts []stint.Option
		for _, parent := range g.nodes {
			if g.dice.IntN(3) == 0 {
				opts = append(opts, wants[g.dice.IntN(len(wants))](parent))
			}
		}
		g.add(opts...)
	}
}

func (g *graph) join(n int) {
	g.wide = n
	for range n {
		g.add()
	}
	g.add(stint.NeedsEnd(slices.Clone(g.nodes)...))
}

func (g *graph) enqueue(client *stint.Client) stint.ID {
	g.t.Helper()
	intent := g.History.Intend(g.keys...)
	tx, err := g.pool.Begin(g.t.Context()) // whose session nobody ends
	if err != nil {
		g.t.Fatal(err)
	}
	id, err := g.flow.Enqueue(g.t.Context(), client.With(postgres.Tx(tx)))
	if err = errors.Join(err, tx.Commit(g.t.Context())); err != nil {
		g.t.Fatal(err)
	}
	ids := make([]int64, len(g.nodes))
	for i, n := range g.nodes {
		ids[i] = int64(n.ID())
	}
	intent.Committed(ids...)
	return id
}
