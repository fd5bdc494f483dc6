package stinttest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Want is something that is asked of an enqueued job.
type Want func(*wanted)

// wanted is all that is asked.
type wanted struct {
	checks []func(*stint.JobInfo) string // each says what is wrong, or nothing
	times  int                           // how many must fit; negative: any but none
}

// Where asks that the arguments are as a function says. Arguments that do not decode do not fit. Those of
// a kind that is sealed are as they are stored: [stint.Client.Job] opens them.
func Where[A any](fits func(args A) bool) Want {
	return must(func(job *stint.JobInfo) string {
		var args A
		if err := json.Unmarshal(job.Args, &args); err != nil {
			return "its arguments are no " + fmt.Sprintf("%T", args)
		}
		if !fits(args) {
			return "its arguments"
		}
		return ""
	})
}

func must(check func(*stint.JobInfo) string) Want {
	return func(w *wanted) { w.checks = append(w.checks, check) }
}

// InQueue asks that the job is, or was, in a queue.
func InQueue(name string) Want {
	return Like("its queue is not "+name, func(job *stint.JobInfo) bool { return job.Queue == name })
}

// WithTag asks for a tag.
func WithTag(tag string) Want {
	return Like("it has no tag "+tag, func(job *stint.JobInfo) bool { return slices.Contains(job.Tags, tag) })
}

// WithPriority asks for a priority.
func WithPriority(p int) Want {
	return Like(fmt.Sprintf("its priority is not %d", p), func(job *stint.JobInfo) bool { return job.Priority == p })
}

// InState asks that the job is in a state: [stint.Scheduled], say, for one that
// waits for its time.
func InState(state stint.State) Want {
	return Like("it is not "+string(state), func(job *stint.JobInfo) bool { return job.State == state })
}

// DueIn asks that the job was to wait for so long from its enqueue, within
// a second.
func DueIn(d time.Duration) Want {
	return Like(fmt.Sprintf("it is not due in %v", d), func(job *stint.JobInfo) bool {
		return (job.Due.Sub(job.Created) - d).Abs() <= time.Second
	})
}

// Like asks for anything else. The text says what is wrong with a job that does
// not fit.
func Like(otherwise string, fits func(job *stint.JobInfo) bool) Want {
	return must(func(job *stint.JobInfo) string {
		if fits(job) {
			return ""
		}
		return otherwise
	})
}

// Times asks that exactly so many jobs fit. Without it one is enough.
func Times(n int) Want { return func(w *wanted) { w.times = n } }

// Enqueued fails the test unless a job of the kind was enqueued that is as
// wanted, whether it has run or not. It returns those jobs, oldest first. The failure
// lists what was enqueued instead.
//
// For a kind that is declared elsewhere, such as "sh", use stint.NewKind[json.RawMessage]("sh").
func Enqueued[A any](t testing.TB, store store.Inspector, kind stint.Kind[A], wants ...Want) []stint.JobInfo {
	t.Helper()
	return enqueued(t, store, kind.Declaration().Name, wants)
}

// NotEnqueued fails the test if a job of the kind was enqueued that is as
// wanted.
func NotEnqueued[A any](t testing.TB, store store.Inspector, kind stint.Kind[A], wants ...Want) {
	t.Helper()
	enqueued(t, store, kind.Declaration().Name, append(slices.Clone(wants), Times(0)))
}

func enqueued(t testing.TB, store store.Inspector, kind string, wants []Want) []stint.JobInfo {
	t.Helper()
	w := &wanted{times: -1}
	for _, want := range wants {
		want(w)
	}
	all, err := listJobs(t.Context(), store, "that were enqueued")
	if err != nil {
		t.Fatalf("stinttest: %v", err)
	}
	var fit []stint.JobInfo
	for i := range all {
		if w.misfit(&all[i], kind) == "" {
			fit = append(fit, all[i])
		}
	}
	if w.times < 0 && len(fit) > 0 || w.times == len(fit) {
		return fit
	}
	want := "want one at least"
	if w.times >= 0 {
		want = fmt.Sprintf("want %d", w.times)
	}
	t.Errorf("stinttest: %d jobs of the kind %s are as wanted, %s\n%s", len(fit), kind, want, w.table(all, kind))
	return fit
}

// misfit says why a job is not what is wanted; nothing if it is.
func (w *wanted) misfit(job *stint.JobInfo, kind string) string {
	if job.Kind != kind {
		return "its kind"
	}
	var all []string
	for _, check := range w.checks {
		if why := check(job); why != "" {
			all = append(all, why)
		}
	}
	return strings.Join(all, ", ")
}

// listJobs lists the jobs in some states, or all, oldest first.
func listJobs(ctx context.Context, st store.Inspector, which string, states ...stint.State) (all []stint.JobInfo, err error) {
	for filter := (store.Filter{States: states, Limit: 1000}); ; {
		page, err := st.Jobs(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("look for jobs %s: %w", which, err)
		}
		all = append(all, page...)
		if len(page) < filter.Limit {
			slices.Reverse(all)
			return all, nil
		}
		filter.Before = page[len(page)-1].ID
	}
}

// listed is how many jobs a failure lists, and how much of their arguments.
const (
	listed    = 30
	shownArgs = 80
)

// table lists what was enqueued, and what is wrong with each: the jobs of the
// kind first, as far as there is room.
func (w *wanted) table(all []stint.JobInfo, kind string) string {
	if len(all) == 0 {
		return "nothing was enqueued"
	}
	other := func(job stint.JobInfo) bool { return job.Kind != kind }
	ofKind := func(job stint.JobInfo) bool { return job.Kind == kind }
	jobs := slices.Concat(slices.DeleteFunc(slices.Clone(all), other), slices.DeleteFunc(slices.Clone(all), ofKind))
	text := table("job\tkind\tqueue\tstate\tin\targs\tbut", func(out io.Writer) {
		for i := range jobs[:min(len(jobs), listed)] {
			job := &jobs[i]
			args := string(job.Args)
			if len(args) > shownArgs {
				args = strings.ToValidUTF8(args[:shownArgs], "") + "…"
			}
			fmt.Fprintf(out, "%d\t%s\t%s\t%s\t%v\t%s\t%s\n", job.ID, job.Kind, job.Queue, job.State,
				job.Due.Sub(job.Created).Round(time.Millisecond), args, w.misfit(job, kind))
		}
	})
	if more := len(jobs) - listed; more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	return text
}
