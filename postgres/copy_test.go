package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// storedSQL is what is stored of each job, in the order of their ids, but for what
// tells the moment.
const storedSQL = `
select array_agg((to_jsonb(e) - '{pos,xid,created}'::text[])::text order by pos) from stint.entries e where pos = any ($1)`

// variety is n jobs of which few say the same.
func variety(n int) []stint.NewJob {
	jobs := make([]stint.NewJob, n)
	for i := range jobs {
		j := stint.NewJob{Kind: fmt.Sprint("kind ", i%3), Queue: fmt.Sprint("q", i%5), Priority: i%7 - 3, Args: json.RawMessage(fmt.Sprintf(`{"n":%d,"s":"\u00e9\n"}`, i))}
		switch i % 8 {
		case 1:
			j.Retry = retry.Fixed(i%4, time.Second)
		case 2:
			j.Timeout = time.Duration(i+1) * time.Millisecond
		case 3:
			j.MaxLosses = new(i % 3)
		case 4:
			j.URN, j.Source = fmt.Sprint("urn:", i), "a source"
		case 5:
			j.Metadata = json.RawMessage(`{"trace":"é"}`)
		case 6:
			j.Correlation = fmt.Sprint("of ", i)
		}
		jobs[i] = j
	}
	return jobs
}

func TestALargeBatchIsStoredAsSmallOnesAreAndAnsweredInItsOrder(t *testing.T) {
	s := verified(t)
	client := stint.NewClient(s)
	jobs := variety(2*copyFrom + 1)
	large, err := client.EnqueueMany(t.Context(), jobs)
	must(t, err)
	var small, within []stint.ID
	for part := range slices.Chunk(jobs, copyFrom-1) {
		ids, err := client.EnqueueMany(t.Context(), part)
		must(t, err)
		small = append(small, ids...)
	}
	must(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		within, err = client.With(Tx(tx)).EnqueueMany(t.Context(), jobs)
		return err
	}))
	want := value[[]string](t, s.pool, storedSQL, small)
	if len(want) != len(jobs) {
		t.Fatalf("%d of %d jobs are stored", len(want), len(jobs))
	}
	for name, ids := range map[string][]stint.ID{"by itself": large, "in a transaction": within} {
		got := value[[]string](t, s.pool, storedSQL, ids)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s job %d is stored as\n%s, want\n%s", name, i, got[i], want[i])
			}
		}
	}
}

func TestALargeBatchOfATransactionThatRollsBackIsNotThere(t *testing.T) {
	s := verified(t)
	tx := begin(t, s)
	_, err := stint.NewClient(s).With(Tx(tx)).EnqueueMany(t.Context(), variety(copyFrom))
	must(t, err)
	must(t, tx.Rollback(t.Context()))
	if _, err := stint.NewClient(s).With(Tx(tx)).EnqueueMany(t.Context(), variety(copyFrom)); err == nil {
		t.Error("a transaction that is over took a batch")
	}
	if n := value[int](t, s.pool, `select count(*) from stint.entries`); n != 0 {
		t.Errorf("%d jobs are there", n)
	}
}

func TestPoliciesThatTheDatabaseLostTravelWithALargeBatch(t *testing.T) {
	s := verified(t)
	client := stint.NewClient(s)
	jobs := variety(copyFrom)
	_, err := client.EnqueueMany(t.Context(), jobs)
	must(t, err)
	exec(t, s, `truncate stint.policies, stint.entries`)
	_, err = client.EnqueueMany(t.Context(), jobs)
	must(t, err)
	at := value[[]store.Position](t, s.pool, `select array_agg(pos order by pos) from stint.entries`)
	got, err := openStore(t, s.url()).Fetch(t.Context(), at)
	must(t, err)
	for i := range got {
		if got[i].Retry != jobs[i].Retry {
			t.Errorf("job %d is read with %v, want %v", i, got[i].Retry, jobs[i].Retry)
		}
	}
}
