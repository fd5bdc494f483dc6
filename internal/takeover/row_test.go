package takeover

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

func at(t time.Time) pgtype.Timestamptz { return pgtype.Timestamptz{Time: t, Valid: true} }

func aRow() row {
	return row{
		id: 7, state: "retryable", queue: "mail", kind: "send", args: []byte(`{"to": "ada"}`), metadata: []byte(`{"trace": "x"}`),
		priority: 4, tags: []string{"a-b", "c", "a-b"}, attempt: 2, maxAttempts: 25,
		created: at(time.UnixMicro(1_700_000_000_000_001)), scheduled: at(time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)),
	}
}

func TestARowBecomesTheJobThatItIs(t *testing.T) {
	r := &River{Rename: map[string]string{"send": "send_mail", "": "nothing"}}
	got, err := r.job(aRow())
	if err != nil {
		t.Fatal(err)
	}
	want := stint.NewJob{
		Kind: "send_mail", Args: []byte(`{"to": "ada"}`), Queue: "mail", Priority: 3, RunAt: time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC),
		Retry: retry.Exponential(22, 81*time.Second).MaxDelay(331_776 * time.Second).Jitter(0.1), Tags: []string{"a-b", "c"}, Source: "river",
		Metadata:       []byte(`{"river":{"attempt":2,"created_at":"2023-11-14T22:13:20.000001Z","id":7,"max_attempts":25},"trace":"x"}`),
		IdempotencyKey: "river:7:1700000000000001",
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b retry.Policy) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestAMemberOfTheMetadataThatIsThereAlreadyIsKept(t *testing.T) {
	w := aRow()
	w.metadata = []byte(`{"river":"mine","stint_import":{"state":"available"}}`)
	if job, err := new(River).job(w); err != nil || string(job.Metadata) != `{"river":"mine"}` {
		t.Errorf("the metadata are %s, %v", job.Metadata, err)
	}
}

func TestAJobHasTheAttemptsThatAreLeftAndOneAtLeast(t *testing.T) {
	for _, c := range []struct {
		attempt, most, retries int
	}{{0, 25, 24}, {0, 1, 0}, {24, 25, 0}, {25, 25, 0}, {30_000, 32_767, 2766}} {
		p := attemptsLeft(c.attempt, c.most)
		if n, bounded := p.Retries(); n != c.retries || !bounded || p.Validate() != nil {
			t.Errorf("after %d of %d attempts there are %d retries, want %d; %v", c.attempt, c.most, n, c.retries, p.Validate())
		}
	}
}

func TestWhatStintCannotAcceptIsRefusedWithItsReason(t *testing.T) {
	for why, change := range map[string]func(*row){
		"args: 1048577 bytes":       func(w *row) { w.args = []byte(`"` + strings.Repeat("x", 1<<20-1) + `"`) },
		"kind: ":                    func(w *row) { w.kind = " send" },
		"queue: ":                   func(w *row) { w.queue = "*" },
		"tags: ":                    func(w *row) { w.tags = []string{""} },
		"metadata: it must be a":    func(w *row) { w.metadata = []byte(`[1]`) },
		"metadata: it must be":      func(w *row) { w.metadata = []byte(`null`) },
		"metadata: 7":               func(w *row) { w.metadata = []byte(`{"x":"` + strings.Repeat("x", 70_000) + `"}`) },
		"it was imported before":    func(w *row) { w.metadata = []byte(`{"stint_job":1}`) },
		"an import was interrupted": func(w *row) { w.stale = true },
		"its time is infinity":      func(w *row) { w.scheduled = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true} },
		"run at: the year 9999":     func(w *row) { w.scheduled = at(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) },
	} {
		w := aRow()
		change(&w)
		if _, err := new(River).job(w); err == nil || !strings.HasPrefix(err.Error(), why) {
			t.Errorf("the error is %v, want %q", err, why)
		}
	}
}

func TestJobsAreCountedInTheOrderOfQueueKindAndState(t *testing.T) {
	var r Report
	var b batch
	for _, text := range []string{"b k x", "a k x", "a k x", "a j x", "a k w", "c k x"} {
		part := strings.Fields(text)
		b.add(row{id: 9, queue: part[0], kind: part[1], state: part[2], failed: part[2] == "w", unique: part[0] == "b"}, stint.NewJob{}, nil)
	}
	for range 150 {
		b.add(row{id: 10}, stint.NewJob{}, stint.ErrInvalid)
	}
	r.add(b, []stint.Receipt{5: {Duplicate: true}})
	r.add(batch{refusals: b.refusals[:1]}, nil)
	want := []Count{{"a", "j", "x", 1}, {"a", "k", "w", 1}, {"a", "k", "x", 2}, {"b", "k", "x", 1}}
	if diff := cmp.Diff(want, r.Taken); diff != "" || r.Jobs != 5 || r.Failed != 1 || r.Unique != 1 || r.Known != 1 || b.last != 10 {
		t.Errorf("%+v %s", r, diff)
	}
	if r.Refused != 151 || len(r.Refusals) != 100 {
		t.Errorf("%d were refused, and %d listed", r.Refused, len(r.Refusals))
	}
}
