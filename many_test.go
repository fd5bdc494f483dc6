package stint_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

func TestGatheringWithinItsBoundsOnly(t *testing.T) {
	for _, c := range []struct {
		g    stint.Gathering
		want string // of the panic; empty for none
	}{
		{stint.Gather(1, 0), ""},
		{stint.Gather(stint.MaxGather, stint.MaxGatherWait), ""},
		{stint.Gather(0, time.Second), "0 jobs are not between 1 and 1000"},
		{stint.Gather(stint.MaxGather+1, 0), "1001 jobs are not between 1 and 1000"},
		{stint.Gather(10, -1), "a wait of -1ns is not between 0 and 5s"},
		{stint.Gather(10, stint.MaxGatherWait+1), "a wait of 5.000000001s is not between 0 and 5s"},
		{stint.Gathering{}, "0 jobs are not"},
	} {
		func() {
			defer func() {
				v := recover()
				if got, _ := v.(string); (v == nil) != (c.want == "") || !strings.Contains(got, c.want) {
					t.Errorf("%+v: it panics with %v, want %q", c.g, v, c.want)
				}
			}()
			mux := stint.NewMux()
			stint.HandleMany(mux, stint.NewKind[int]("many"), c.g, func(context.Context, []stint.BatchJob[int]) error { return nil })
			if got := mux.Gathering("many"); got != c.g {
				t.Errorf("the mux has %+v", got)
			}
		}()
	}
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "the handler is nil") {
			t.Errorf("without a handler it panics with %v", v)
		}
	}()
	stint.HandleMany[int](stint.NewMux(), stint.NewKind[int]("many"), stint.Gather(2, 0), nil)
}

// What the handler of a batch is, a test of the handler can call as that of one job.
func TestABatchOfOneNeedsNoEngine(t *testing.T) {
	mux := stint.NewMux()
	stint.HandleMany(mux, stint.NewKind[int]("many"), stint.Gather(9, time.Second), func(ctx context.Context, jobs []stint.BatchJob[int]) error {
		if len(jobs) != 1 || jobs[0].Args != 7 {
			t.Errorf("the jobs are %v", jobs)
		}
		return stint.Snooze(time.Hour)
	})
	job := &stint.Job{ID: 1, Kind: "many", Args: []byte(`7`), Attempt: 1}
	if _, err := mux.Handler("many")(t.Context(), job); err == nil {
		t.Error("there is no error")
	}
}
