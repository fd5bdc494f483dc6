package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// kept is an enqueuer that only remembers: the client's part, without a store.
type kept struct{ jobs []stint.NewJob }

func (k *kept) Enqueue(_ context.Context, _ stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	k.jobs = append(k.jobs, jobs...)
	return make([]stint.Receipt, len(jobs)), nil
}

func TestWhatIsSaidOfTheJobWinsOverTheKind(t *testing.T) {
	kind := stint.NewKind[map[string]int]("k", stint.Queue("mail"), stint.Priority(5), stint.Tag("a", "b"),
		stint.Retry(retry.None()), stint.Timeout(time.Minute))
	var k kept
	_, err := kind.Enqueue(t.Context(), stint.NewClient(&k), map[string]int{"n": 1}, stint.Priority(-1), stint.Tag("b", "c"), stint.Delay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := stint.NewJob{
		Kind: "k", Args: json.RawMessage(`{"n":1}`), Queue: "mail", Priority: -1, Tags: []string{"a", "b", "c"},
		Retry: retry.None(), Timeout: time.Minute, Delay: time.Hour,
	}
	if diff := cmp.Diff(want, k.jobs[0], cmp.Comparer(func(a, b retry.Policy) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if tags := kind.Declaration().Tags; len(tags) != 2 {
		t.Errorf("a job's tags went into its kind: %v", tags)
	}
}

func TestWhenToBeginIsSaidOnceAndLast(t *testing.T) {
	kind, by := stint.NewKind[int]("k", stint.StartWithin(time.Minute)), time.Now().Add(time.Hour)
	for _, c := range []struct {
		opts []stint.Option
		want stint.NewJob
	}{
		{nil, stint.NewJob{StartWithin: time.Minute}},
		{[]stint.Option{stint.StartWithin(time.Hour), stint.Delay(time.Hour)}, stint.NewJob{StartWithin: time.Hour, Delay: time.Hour}},
		{[]stint.Option{stint.StartBy(by), stint.RunAt(by)}, stint.NewJob{StartBy: by, RunAt: by}},
		{[]stint.Option{stint.RunAt(by), stint.Delay(time.Hour)}, stint.NewJob{StartWithin: time.Minute, Delay: time.Hour}},
		{[]stint.Option{stint.Delay(time.Hour), stint.RunAt(by)}, stint.NewJob{StartWithin: time.Minute, RunAt: by}},
		{[]stint.Option{stint.StartBy(by), stint.StartWithin(time.Hour)}, stint.NewJob{StartWithin: time.Hour}},
		{[]stint.Option{stint.StartBy(time.Time{})}, stint.NewJob{}},
		{[]stint.Option{stint.StartWithin(0)}, stint.NewJob{}},
	} {
		var k kept
		if _, err := kind.Enqueue(t.Context(), stint.NewClient(&k), 1, c.opts...); err != nil {
			t.Fatal(err)
		}
		if got := k.jobs[0]; !got.StartBy.Equal(c.want.StartBy) || got.StartWithin != c.want.StartWithin || !got.RunAt.Equal(c.want.RunAt) || got.Delay != c.want.Delay {
			t.Errorf("it is to begin by %v, within %v, at %v, after %v; want %v, %v, %v and %v",
				got.StartBy, got.StartWithin, got.RunAt, got.Delay, c.want.StartBy, c.want.StartWithin, c.want.RunAt, c.want.Delay)
		}
	}
}

func TestAJobWithoutArgumentsHasAnEmptyObject(t *testing.T) {
	var k kept
	client := stint.NewClient(&k)
	for _, args := range []json.RawMessage{nil, json.RawMessage("null"), {}} {
		if _, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "k", Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	for _, j := range k.jobs {
		if string(j.Args) != "{}" || j.Queue != "default" {
			t.Errorf("args %s, queue %s", j.Args, j.Queue)
		}
	}
}

func TestBadInputSaysWhatAndWhereAndStoresNothing(t *testing.T) {
	long := strings.Repeat("x", 256)
	for want, job := range map[string]stint.NewJob{
		"kind: the name is empty":                                         {},
		`kind: "a\nb" has a control character at byte 1`:                  {Kind: "a\nb"},
		"queue: the name has 256 bytes, more than 255":                    {Kind: "k", Queue: long},
		`queue: "*" means every queue and names none`:                     {Kind: "k", Queue: "*"},
		`queue: " q" has space at an end`:                                 {Kind: "k", Queue: " q"},
		"queue: \"\\xff\" is not UTF-8":                                   {Kind: "k", Queue: "\xff"},
		"priority: 101 is outside -100 to 100":                            {Kind: "k", Priority: 101},
		"delay: -1s is negative":                                          {Kind: "k", Delay: -time.Second},
		"run at: a job has a delay or an instant, not both":               {Kind: "k", Delay: time.Second, RunAt: time.Now()},
		"timeout: 1µs is shorter than a millisecond":                      {Kind: "k", Timeout: time.Microsecond},
		"start within: -1s is negative":                                   {Kind: "k", StartWithin: -time.Second},
		"start within: 1µs is shorter than a millisecond":                 {Kind: "k", StartWithin: time.Microsecond},
		"start within: 876001h0m0s is more than a hundred years":          {Kind: "k", StartWithin: 876001 * time.Hour},
		"start by: a job begins by an instant or within a time, not both": {Kind: "k", StartWithin: time.Second, StartBy: time.Now()},
		"start by: the year 9001 is out of range":                         {Kind: "k", StartBy: time.Date(9001, 1, 1, 0, 0, 0, 0, time.UTC)},
		"start by: the job is due only after that":                        {Kind: "k", RunAt: time.Unix(1e9, 1), StartBy: time.Unix(1e9, 0)},
		"args: 1048578 bytes are more than the limit of 1048576":          {Kind: "k", Args: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)},
		"metadata: it must be a JSON object":                              {Kind: "k", Metadata: json.RawMessage("[]")},
		`tags: "a" is there twice`:                                        {Kind: "k", Tags: []string{"a", "a"}},
		"tags: 51 are more than 50":                                       {Kind: "k", Tags: make([]string, 51)},
		"retry: invalid retry policy: a negative number of retries: -1":   {Kind: "k", Retry: retry.Fixed(-1, 0)},
	} {
		var k kept
		_, err := stint.NewClient(&k).Enqueue(t.Context(), job)
		if !errors.Is(err, stint.ErrInvalid) || len(k.jobs) != 0 {
			t.Errorf("%+v: %v, and %d jobs were stored", job.Kind, err, len(k.jobs))
			continue
		}
		if err.Error() != want && !strings.HasPrefix(want, "retry") {
			t.Errorf("the error is %q, want %q", err, want)
		}
	}
	var k kept
	_, err := stint.NewClient(&k).Enqueue(t.Context(), stint.KindInfo{Name: "k"}.Job(nil, stint.Delay(-time.Second)))
	if !errors.Is(err, stint.ErrInvalid) || err.Error() != "delay: -1s is negative" {
		t.Errorf("a negative delay as an option: %v", err)
	}
	_, err = stint.NewClient(&k).EnqueueMany(t.Context(), []stint.NewJob{{Kind: "fine"}, {Kind: ""}})
	if err == nil || len(k.jobs) != 0 || !strings.HasPrefix(err.Error(), "job 1") {
		t.Errorf("a batch with one bad job: %v, and %d jobs were stored", err, len(k.jobs))
	}
}

func TestDeclarationsThatCanNeverBeRightPanic(t *testing.T) {
	mustPanic := func(name string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s did not panic", name)
			}
		}()
		f()
	}
	mustPanic("an empty name", func() { stint.NewKind[int]("") })
	mustPanic("a kind with a delay", func() { stint.NewKind[int]("k", stint.Delay(time.Second)) })
	mustPanic("a kind with an instant to begin by", func() { stint.NewKind[int]("k", stint.StartBy(time.Now())) })
	mustPanic("a kind with a bad policy", func() { stint.NewKind[int]("k", stint.Retry(retry.Forever(0))) })
	mux := stint.NewMux()
	h := func(context.Context, *stint.Job) (json.RawMessage, error) { return nil, nil }
	mux.Add(stint.KindInfo{Name: "k"}, h)
	mustPanic("a kind twice", func() { mux.Add(stint.KindInfo{Name: "k"}, h) })
	mustPanic("no handler", func() { mux.Add(stint.KindInfo{Name: "l"}, nil) })
}

func TestLanesDifferInEachOfTheirParts(t *testing.T) {
	seen := map[store.LaneID]store.Lane{}
	for _, q := range []string{"a", "b", "a1"} {
		for _, p := range []int{-100, -1, 0, 1, 11} {
			for _, part := range []store.Part{store.PartNormal, store.PartFront, store.PartKind} {
				for _, kind := range []string{"k", "l"} {
					lane := store.LaneOf(q, p, part, kind)
					if old, ok := seen[lane.ID]; ok && old != lane {
						t.Errorf("%+v and %+v have one id", old, lane)
					}
					if lane.ID < 0 {
						t.Errorf("%+v is negative", lane)
					}
					seen[lane.ID] = lane
				}
			}
		}
	}
	if len(seen) != 3*5*(1+1+2) {
		t.Errorf("%d lanes", len(seen))
	}
}

func TestNumbersBeyond53BitsReachTheHandlerExactly(t *testing.T) {
	kind := stint.NewKind[map[string]any]("big")
	mux := stint.NewMux()
	var got any
	stint.Handle(mux, kind, func(_ context.Context, _ *stint.Job, args map[string]any) error {
		got = args["n"]
		return nil
	})
	if _, err := mux.Handler("big")(t.Context(), &stint.Job{Args: json.RawMessage(`{"n":9007199254740993}`)}); err != nil {
		t.Fatal(err)
	}
	if got != json.Number("9007199254740993") {
		t.Errorf("it became %v (%T)", got, got)
	}
}
