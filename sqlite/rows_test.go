package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// varied makes a batch of which some jobs wait, some have keys and tags, and one
// is as large as all that one statement takes.
func varied(n int, of string) []stint.NewJob {
	jobs := someJobs(n)
	for i := range jobs {
		if i%7 == 3 {
			jobs[i].Delay, jobs[i].Tags = time.Hour, []string{"later", fmt.Sprint(i)}
		}
		if i%13 == 5 {
			jobs[i].IdempotencyKey = fmt.Sprintf("%d of %d in %s", i, n, of)
		}
		if i == 20 {
			jobs[i].Args = json.RawMessage(`"` + strings.Repeat("x", maxBulkBytes) + `"`)
		}
	}
	return jobs
}

func TestEachJobOfABatchIsStoredAsItIsWhateverTheSizeOfTheBatch(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	db := database(t, s.path)
	for _, n := range []int{1, 2, 7, 8, 9, maxBulk - 1, maxBulk, maxBulk + 1, maxBulk + 8, 2*maxBulk + 11} {
		jobs := varied(n, "the store's transaction")
		receipts, err := s.Enqueue(t.Context(), stint.Tx{}, jobs)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, s, jobs, receipts)

		jobs = varied(n, "a caller's")
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if receipts, err = s.Enqueue(t.Context(), Tx(tx), jobs); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		compare(t, s, jobs, receipts)
	}
}

// compare looks at each job that was enqueued.
func compare(t *testing.T, s *Store, jobs []stint.NewJob, receipts []stint.Receipt) {
	t.Helper()
	again, err := s.Enqueue(t.Context(), stint.Tx{}, slices.DeleteFunc(slices.Clone(jobs), func(j stint.NewJob) bool { return j.IdempotencyKey == "" }))
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range jobs {
		got, err := s.Job(t.Context(), receipts[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		state := stint.Available
		if j.Delay > 0 {
			state = stint.Scheduled
		}
		if string(got.Args) != string(j.Args) || got.State != state || !slices.Equal(got.Tags, j.Tags) {
			t.Errorf("of %d jobs number %d is %s with %.20s and the tags %v; want %s, %.20s, %v", len(jobs), i, got.State, got.Args, got.Tags, state, j.Args, j.Tags)
		}
		if j.IdempotencyKey != "" {
			if !again[0].Duplicate || again[0].ID != receipts[i].ID {
				t.Errorf("of %d jobs number %d is %d, but its key is of %+v", len(jobs), i, receipts[i].ID, again[0])
			}
			again = again[1:]
		}
	}
}

func TestAKeyThatABatchHasTwiceIsOneJob(t *testing.T) {
	s := open(t, Memory)
	jobs := slices.Repeat(someJobs(1), maxBulk)
	jobs[3].IdempotencyKey, jobs[17].IdempotencyKey = "same", "same"
	receipts, err := s.Enqueue(t.Context(), stint.Tx{}, jobs)
	if err != nil {
		t.Fatal(err)
	}
	if !receipts[17].Duplicate || receipts[17].ID != receipts[3].ID {
		t.Errorf("the first is %+v, the second %+v", receipts[3], receipts[17])
	}
}

// finished is a claim of n jobs and an outcome for each.
func finished(t *testing.T, s *Store, n int) (store.EngineID, store.Claim, []store.Completion) {
	t.Helper()
	token := join(t, s)
	enqueue(t, s, someJobs(n))
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	c, err := s.Claim(t.Context(), store.ClaimRequest{Engine: token, Serial: 1, Nonce: store.Nonce(rand.Int64()), Lane: lane, Max: n})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	var done []store.Completion
	for i := range c.Entries {
		x := store.Conclude(&c.Entries[i], store.Result{Outcome: stint.OutcomeCompleted}, now, 0)
		x.Nonce, x.Slot, x.Started, x.Ended, x.Result = c.Nonce, 1, now, now, json.RawMessage(fmt.Sprint(i))
		done = append(done, x)
	}
	return token, c, done
}

func TestOutcomesThatArePartlyThereAreCompletedAndCountedOnce(t *testing.T) {
	s := open(t, Memory)
	token, c, done := finished(t, s, 3*maxBulk)
	for _, step := range []struct{ to, want int }{{1, 1}, {maxBulk / 2, maxBulk/2 - 1}, {maxBulk + 20, maxBulk/2 + 20}, {3 * maxBulk, 2*maxBulk - 20}, {3 * maxBulk, 0}} {
		n, err := s.Finish(t.Context(), token, []store.ClaimRef{c.ClaimRef}, done[:step.to])
		if err != nil || n != step.want {
			t.Fatalf("of the first %d, %d were new, %v; want %d", step.to, n, err, step.want)
		}
	}
	for i := range done {
		job, err := s.Job(t.Context(), done[i].Job)
		if err != nil || job.State != stint.Completed || string(job.Attempts[0].Result) != fmt.Sprint(i) {
			t.Errorf("number %d is %+v, %v", i, job, err)
		}
	}
}

func TestAnOutcomeThatCannotBeStoredIsNamedAndNothingOfItsBatchStays(t *testing.T) {
	s := open(t, Memory)
	token, c, done := finished(t, s, 2*maxBulk)
	done[maxBulk+7].Result = json.RawMessage(`{`)
	n, err := s.Finish(t.Context(), token, []store.ClaimRef{c.ClaimRef}, done)
	if n != 0 || !errors.Is(err, stint.ErrUnstorable) || !strings.Contains(err.Error(), fmt.Sprintf("position %d:", done[maxBulk+7].Pos)) {
		t.Errorf("%d were recorded, %v", n, err)
	}
	done[maxBulk+7].Result = nil
	if n, err := s.Finish(t.Context(), token, []store.ClaimRef{c.ClaimRef}, done); n != len(done) || err != nil {
		t.Errorf("then %d were recorded, %v", n, err)
	}
}

func TestEntriesAreReadInTheOrderAskedWhateverIsBetweenThem(t *testing.T) {
	s := open(t, Memory)
	enqueue(t, s, someJobs(100))
	for name, at := range map[string][]store.Position{
		"one after the other": {1, 2, 3, 4, 5}, "with gaps": {2, 4, 13, 14, 99}, "backwards": {5, 4, 3}, "in disorder": {7, 80, 8, 9, 6},
	} {
		entries, err := s.Fetch(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		var got []store.Position
		for _, e := range entries {
			got = append(got, e.Pos)
			if want := fmt.Sprintf(`{"n":%d}`, e.Pos-1); string(e.Args) != want {
				t.Errorf("%s: position %d has %s, want %s", name, e.Pos, e.Args, want)
			}
		}
		if !slices.Equal(got, at) {
			t.Errorf("%s: got %v, want %v", name, got, at)
		}
	}
	if entries, err := s.Fetch(t.Context(), []store.Position{3, 200}); err != nil || len(entries) != 1 || entries[0].Pos != 3 {
		t.Errorf("of one that is there and one that is not: %v, %v", entries, err)
	}
}

func TestAStatementTakesRowsByTheirNumberAndSize(t *testing.T) {
	for _, c := range []struct{ rows, size, want int }{
		{0, 0, 0}, {1, 0, 1}, {7, 0, 1}, {8, 0, 8}, {31, 0, 8}, {32, 0, 32}, {1000, 0, 32},
		{32, maxBulkBytes / 32, 32}, {32, maxBulkBytes/32 + 1, 8}, {32, maxBulkBytes/8 + 1, 1}, {32, 2 * maxBulkBytes, 1},
	} {
		if got := bulk(c.rows, func(int) int { return c.size }); got != c.want {
			t.Errorf("of %d rows of %d bytes it takes %d, want %d", c.rows, c.size, got, c.want)
		}
	}
}
