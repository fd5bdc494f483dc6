//go:build unix

package chaos_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/retry"
)

// ward is a fleet of two workers that do jobs which do harm, beside bystanders.
type ward struct {
	*chaos.Fleet
	t          *testing.T
	ground     *chaos.Ground
	keepers    []*chaos.Keeper
	bystanders []stint.ID
}

func newWard(t *testing.T, db string, ttl time.Duration) *ward {
	w := &ward{t: t, Fleet: chaos.NewFleet(t), ground: open(t, db)}
	for i := range 2 {
		w.keepers = append(w.keepers, w.Keep(chaos.Worker{
			Name: fmt.Sprintf("worker-%d", i+1), DB: db, Slots: 10, TimeToLive: ttl,
		}))
	}
	return w
}

// admit enqueues a job with a poison, and as many bystanders as have slots.
func (w *ward) admit(poison string, opts ...stint.Option) stint.ID {
	w.t.Helper()
	for range 20 {
		w.bystanders = append(w.bystanders, w.enqueue(chaos.Args{Key: fmt.Sprint("bystander-", len(w.bystanders)), Work: 200}))
	}
	return w.enqueue(chaos.Args{Key: poison, Poison: poison}, opts...)
}

func (w *ward) enqueue(args chaos.Args, opts ...stint.Option) stint.ID {
	w.t.Helper()
	intent := w.History.Intend(args.Key)
	id, err := chaos.Kind.Enqueue(w.t.Context(), stint.NewClient(w.ground.Store), args, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	intent.Committed(int64(id))
	return id
}

func (w *ward) job(id stint.ID) *stint.JobInfo {
	w.t.Helper()
	job, err := w.ground.Store.Job(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// close judges what happened, and sees that the bystanders completed. Each may
// have been charged once. It returns how many lives the workers had.
func (w *ward) close() (lives int) {
	w.t.Helper()
	charged := 0
	for _, k := range w.keepers {
		k.Stop()
		lives += k.Lives
	}
	for _, id := range w.bystanders {
		job := w.job(id)
		if job.State != stint.Completed || job.Attempt > 2 {
			w.t.Errorf("bystander %d is %s at attempt %d", id, job.State, job.Attempt)
		}
		charged += job.Attempt - 1
	}
	w.Burials(w.t.Context(), w.ground)
	w.t.Logf("%d lives; %d of %d bystanders were charged; %v", lives, charged, len(w.bystanders), w.Judge(w.t.Context(), w.ground))
	return lives
}

// One after the other: of several killers at once each may be taken for the other.
func TestAJobThatEndsItsProcessInWhateverWayIsGivenUpAndItsNeighboursAreNot(t *testing.T) {
	atLength(t)
	t.Parallel()
	onEach(t, func(t *testing.T, db string) {
		w := newWard(t, db, pace.Of(2*time.Second))
		for name := range chaos.Deadly {
			if name == "takes all memory" && runtime.GOOS != "linux" {
				continue // nothing bounds what it takes
			}
			id := w.admit(name, stint.MaxLosses(1))
			w.Drain(t.Context(), w.ground.Store, time.Minute)
			job := w.job(id)
			last := job.Attempts[len(job.Attempts)-1]
			if job.State != stint.Failed || job.Reason != retry.ReasonLost || last.Outcome != stint.OutcomeLost || last.Error == nil || last.Error.Class != "lost" {
				t.Errorf("what %s is %s (%s), %s at last, with the error %+v", name, job.State, job.Reason, last.Outcome, last.Error)
			}
		}
		w.close()
		words := map[string]string{
			"panics beside its handler": "panic: nobody recovers this",
			"unlocks what is unlocked":  "fatal error: sync: unlock of unlocked mutex",
			"writes a map at once":      "fatal error: concurrent map writes",
			"overflows the stack":       "goroutine stack exceeds",
			"reads what is not there":   "fatal error: fault",
			"takes all memory":          "out of memory",
		}
		if raceDetector {
			delete(words, "takes all memory") // which the detector is refused first
		}
		w.sawDeaths(words)
	})
}

func TestJobsThatMistreatTheirEngineEndByThemselvesForAReason(t *testing.T) {
	t.Parallel()
	const kept = 16 << 10 // of an error's text
	wants := map[string]struct {
		state         stint.State
		reason, class string
		message       string // a part
	}{
		"panics with nothing":         {stint.Failed, retry.ReasonExhausted, "panic", "panic called with nil argument"},
		"panics with a broken error":  {stint.Failed, retry.ReasonExhausted, "panic", "panic: <nil>"},
		"panics with a fault":         {stint.Failed, retry.ReasonExhausted, "panic", "index out of range"},
		"ends its goroutine":          {stint.Failed, retry.ReasonExhausted, "errors.errorString", "the handler ended its goroutine"},
		"returns a broken error":      {stint.Failed, retry.ReasonExhausted, "chaos.broken", "its method Error panicked: runtime error: invalid memory address"},
		"fails with ten megabytes":    {stint.Failed, retry.ReasonExhausted, "errors.errorString", "üend"},
		"fails with odd bytes":        {stint.Failed, retry.ReasonExhausted, "errors.errorString", "a\uFFFDb\uFFFDc"},
		"ignores its timeout":         {stint.Failed, retry.ReasonExhausted, "timeout", "the attempt timed out"},
		"works and looks at nothing":  {stint.Failed, retry.ReasonExhausted, "timeout", "the attempt timed out"},
		"returns ten megabytes":       {stint.Completed, "the result was not kept: result: 10485762 bytes are more than the limit of 1048576", "", ""},
		"returns what is no JSON":     {stint.Completed, "the result was not kept: result: malformed JSON at byte 5: unexpected end of JSON input", "", ""},
		"returns NUL":                 {stint.Completed, `the result was not kept: result: a string holds the NUL character \u0000`, "", ""},
		"returns odd bytes":           {stint.Completed, "the result was not kept: result: the JSON is not UTF-8", "", ""},
		"returns half a surrogate":    {stint.Completed, "the result was not kept: result: a string holds half of a surrogate pair", "", ""},
		"returns a number beyond all": {stint.Completed, "the result was not kept: result: a number's exponent is beyond 1000", "", ""},
		"returns absurd depth":        {stint.Completed, "the result was not kept: result: malformed JSON at byte 10001: invalid character '[' exceeded max depth", "", ""},
	}
	onEach(t, func(t *testing.T, db string) {
		w := newWard(t, db, patient)
		ids := map[string]stint.ID{}
		for name := range chaos.Harmful {
			limit := time.Minute
			if wants[name].class == "timeout" {
				limit = 300 * time.Millisecond
			}
			ids[name] = w.admit(name, stint.Retry(retry.Fixed(1, 10*time.Millisecond)), stint.Timeout(limit))
		}
		w.Drain(t.Context(), w.ground.Store, time.Minute)
		for name, id := range ids {
			job, want := w.job(id), wants[name]
			last := job.Attempts[len(job.Attempts)-1]
			failure := stint.Failure{}
			if last.Error != nil {
				failure = *last.Error
			}
			runs := 1
			if want.state == stint.Failed {
				runs = 2
			}
			if job.State != want.state || job.Reason != want.reason || len(job.Attempts) != runs || last.Result != nil ||
				failure.Class != want.class || !strings.Contains(failure.Message, want.message) || len(failure.Message) > kept {
				t.Errorf("what %s is %s (%s) after %d runs, with the error %s: %.200q", name, job.State, job.Reason, len(job.Attempts), failure.Class, failure.Message)
			}
		}
		if lives := w.close(); lives > len(w.keepers) {
			t.Errorf("the workers had %d lives", lives)
		}
	})
}

// sawDeaths makes sure that each way to die was died of, as the runtime says.
func (w *ward) sawDeaths(words map[string]string) {
	w.t.Helper()
	var said strings.Builder
	for _, k := range w.keepers {
		said.WriteString(k.Said())
	}
	for name, word := range words {
		if _, there := chaos.Deadly[name]; !there || !strings.Contains(said.String(), word) {
			w.t.Errorf("nobody died of what %s: %q", name, word)
		}
	}
}
