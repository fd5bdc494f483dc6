package load

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/sqlite"
)

func small() MixOptions {
	return MixOptions{
		N: 400, Seed: 1, Failing: 0.5, Scheduled: 0.1, Ahead: 100 * time.Millisecond,
		Work: Range[time.Duration]{0, time.Millisecond}, Args: Range[int]{100, 4096},
		Engines: 2, Slots: 8,
	}
}

func TestEveryJobOfAMixEndsAsItWasTo(t *testing.T) {
	var m Meter
	o := small()
	o.Meter = &m
	s := open(t)
	r, err := Mix(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Verified || r.Completed+r.Failed != 400 || r.Failed == 0 || r.Retries == 0 || r.Attempts != 400+r.Retries {
		t.Errorf("the figures are odd: %+v", r)
	}
	if m.Started.Load() != 400 || m.Enqueued.Load() != 400 {
		t.Errorf("the meter shows %d and %d", m.Enqueued.Load(), m.Started.Load())
	}
	if r.Utilization <= 0 || r.Utilization > 1 {
		t.Errorf("slots were used for %v of their time", r.Utilization)
	}
	if len(r.Start) != 3 || r.Start[0].Priority != -10 || r.Start[2].Priority != 10 || r.Lateness.Max <= 0 {
		t.Errorf("not every priority has its times: %+v, %+v", r.Start, r.Lateness)
	}
	if n := r.Start[0].N + r.Start[1].N + r.Start[2].N; n == 400 || n < 300 {
		t.Errorf("%d jobs of 400 were due at once, and a tenth was not to be", n)
	}
}

// overtold is a store that tells of one more attempt.
type overtold struct{ *sqlite.Store }

func (s overtold) Stats(ctx context.Context, f stint.StatsFilter) ([]stint.Stats, error) {
	all, err := s.Store.Stats(ctx, f)
	return append(all, stint.Stats{Outcome: stint.OutcomeLost, Sums: stint.Sums{Attempts: 1}}), err
}

func TestAMixFindsAnAttemptThatItDidNotCause(t *testing.T) {
	s := open(t)
	o := small()
	o.N = 20
	r, err := Mix(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	again := &mix{MixOptions: o, blank: make([]byte, 4096)}
	if err := again.verify(t.Context(), s, &MixResult{Attempts: r.Attempts}); err != nil {
		t.Errorf("what was measured is not believed a second time: %v", err)
	}
	if err := again.verify(t.Context(), overtold{s}, &MixResult{Attempts: r.Attempts}); err == nil || !strings.Contains(err.Error(), "the store tells of 1 attempts that were lost, and 0 were to be") {
		t.Errorf("an attempt was lost: %v", err)
	}
	if err := again.verify(t.Context(), s, &MixResult{Attempts: r.Attempts + 1}); err == nil || !strings.Contains(err.Error(), "the handlers were called") {
		t.Errorf("a handler was called once more: %v", err)
	}
	if _, err := Mix(t.Context(), s, o); err == nil || !strings.Contains(err.Error(), "of 20 jobs the store counts") {
		t.Errorf("20 jobs of another run were believed to be of this one: %v", err)
	}

	m := &mix{MixOptions: o}
	m.blank = make([]byte, 4096)
	m.Failing = 0 // what it now expects is not what there was
	if err := m.verify(t.Context(), s, &MixResult{Attempts: 20}); err == nil {
		t.Error("jobs that failed were believed to have succeeded")
	}
}

func TestAJobOfAMixDependsOnSeedAndNumberAlone(t *testing.T) {
	a := &mix{MixOptions: small(), blank: []byte(strings.Repeat("x", 4096))}
	b := &mix{MixOptions: small(), blank: a.blank}
	b.Seed++
	same := 0
	for i := range int64(100) {
		one, again, other := a.draw(i), a.draw(i), b.draw(i)
		if one != again {
			t.Fatalf("job %d is %+v and then %+v", i, one, again)
		}
		if one == other {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d of 100 jobs are the same with another seed", same)
	}
}

func TestTheSharesOfAMixAreThoseAskedFor(t *testing.T) {
	o := small()
	o.Failing, o.Work, o.Ahead = 0.05, Range[time.Duration]{time.Millisecond, 50 * time.Millisecond}, 5*time.Second
	m := &mix{MixOptions: o, blank: []byte(strings.Repeat("x", 4096))}
	const n = 20_000
	var failing, later int
	queues, priorities := map[string]int{}, map[int]int{}
	for i := range int64(n) {
		d := m.draw(i)
		queues[d.queue]++
		priorities[d.priority]++
		if d.args.Fails > 0 {
			failing++
		}
		if d.args.Later {
			later++
		}
		if d.args.Later != (d.delay > 0) || d.delay > 5*time.Second || d.args.Work < time.Millisecond || d.args.Work > 50*time.Millisecond {
			t.Fatalf("job %d: %+v", i, d)
		}
		job := m.job(i)
		if len(job.Args) < 100 || len(job.Args) > 4096 {
			t.Fatalf("job %d has %d bytes of arguments", i, len(job.Args))
		}
		var a mixArgs
		if err := json.Unmarshal(job.Args, &a); err != nil || a.Work != d.args.Work || a.Fails != d.args.Fails {
			t.Fatalf("job %d: %s, %v", i, job.Args, err)
		}
	}
	for what, c := range map[string][2]int{"failing": {failing, n / 20}, "scheduled": {later, n / 10}, "of mail": {queues["mail"], n / 2}, "urgent": {priorities[-10], n / 10}} {
		if got, want := c[0], c[1]; got < want*9/10 || got > want*11/10 {
			t.Errorf("%d jobs of %d are %s, want about %d", got, n, what, want)
		}
	}
}

func TestUsageIsTheShareOfTheTimeOfAllSlots(t *testing.T) {
	begin := time.Now()
	from := reading{begin, 0}
	if got := from.until(reading{begin.Add(time.Second), 3 * time.Second}, 4); got != 0.75 {
		t.Errorf("3 s of 4 slots in a second are %v", got)
	}
	if got := from.until(from, 4); got != 0 {
		t.Errorf("of no time %v was used", got)
	}
	var u usage
	u.enter()
	a := u.read()
	b := u.read()
	u.enter()
	u.leave()
	u.leave()
	c := u.read()
	if b.busy-a.busy != b.at.Sub(a.at) {
		t.Errorf("one that ran for %v was busy for %v", b.at.Sub(a.at), b.busy-a.busy)
	}
	if d := u.read(); d.busy != c.busy {
		t.Errorf("nobody ran, and was busy for %v", d.busy-c.busy)
	}
}
