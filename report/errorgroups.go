package report

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// ErrorAnalyst groups what goes wrong.
type ErrorAnalyst interface {
	// Errors groups attempts that failed or were lost, those of jobs that were
	// tried again too, by the kind, the class of the error, where in the code it
	// happened, and the message as [NormalizeMessage] has it. It looks at the newest
	// [MaxErrors] that fit, and for these at no more than the newest twice as many
	// attempts that failed or were lost, in the order of their jobs or of the attempts:
	// so it costs the same however much goes wrong, and where it ends so the report says
	// that it is cut off.
	Errors(ctx context.Context, f ErrorFilter) (ErrorReport, error)
}

// ErrorMarker keeps what people decided about groups of errors. Nothing of it is written
// when an attempt fails: that a resolved group has returned is found when groups are read.
type ErrorMarker interface {
	// MarkErrors resolves or mutes a group, whatever it was, whether there are such errors
	// or not, and returns what is kept. The time is that of the store's clock. By and why
	// are kept for those who wonder. When more than [MaxErrorMarks] groups are marked the
	// oldest mark is forgotten: that group is open again.
	MarkErrors(ctx context.Context, m ErrorMark) (ErrorMark, error)

	// ReopenErrors forgets the mark of a group, and reports false when it had none.
	ReopenErrors(ctx context.Context, key string) (bool, error)
}

// MaxErrors is the most attempts that are grouped, and MaxErrorGroups the most groups
// that are returned. MaxErrorMarks is the most groups that are resolved or muted.
const (
	MaxErrors      = 10_000
	MaxErrorGroups = 1_000
	MaxErrorMarks  = 10_000
)

// ErrorState says what people decided about a group of errors, and what came of it.
type ErrorState string

// The states. A resolved group has returned when an attempt failed so after it was
// resolved, by the clock of the store. A muted one stays muted, whatever happens.
const (
	ErrorsOpen     ErrorState = "open" // and returned, in a filter
	ErrorsReturned ErrorState = "returned"
	ErrorsResolved ErrorState = "resolved"
	ErrorsMuted    ErrorState = "muted"
)

// ErrorStates are all of them.
var ErrorStates = []ErrorState{ErrorsOpen, ErrorsReturned, ErrorsResolved, ErrorsMuted}

// ErrorMark is what people decided about a group of errors.
type ErrorMark struct {
	Key   string     `json:"key"`
	State ErrorState `json:"state"` // resolved or muted
	At    time.Time  `json:"at"`    // when that was decided
	By    string     `json:"by,omitempty"`
	Why   string     `json:"why,omitempty"`
}

// Check reports why it cannot be kept, or nil.
func (m ErrorMark) Check() error {
	if m.State != ErrorsResolved && m.State != ErrorsMuted {
		return valid.Invalid("state", "errors are resolved or muted, and not %q", m.State)
	}
	return CheckErrorKey(m.Key)
}

// Clean is the mark as it is stored, of its texts what a database keeps.
func (m ErrorMark) Clean() ErrorMark {
	m.By, m.Why = valid.CleanText(m.By, 255), valid.CleanText(m.Why, 1<<10)
	return m
}

// keyBytes is how many bytes of a hash a key has, each of them two digits.
const keyBytes = 8

// CheckErrorKey reports why no group of errors has a key, or nil.
func CheckErrorKey(key string) error {
	if raw, err := hex.DecodeString(key); err != nil || len(raw) != keyBytes || strings.ToLower(key) != key {
		return valid.Invalid("key", "%q is no key of a group of errors, such as 0123456789abcdef", key)
	}
	return nil
}

// ErrorFilter says which attempts are meant, and which groups of them: those that fit
// all of its fields. A zero field does not restrict.
type ErrorFilter struct {
	Kind  string
	Queue string    // where the attempt was
	Since time.Time // when it ended, or later

	Key   string     // of the group
	State ErrorState // of the group; open ones are also those that returned
}

// Look returns at how many of the newest attempts that failed or were lost a store
// looks.
func (f ErrorFilter) Look() int {
	f.State = "" // of any state there are enough among the newest
	if f == (ErrorFilter{}) {
		return MaxErrors
	}
	return 2 * MaxErrors
}

// ErrorReport says what went wrong.
type ErrorReport struct {
	Groups   []ErrorGroup `json:"groups"`   // those of the most attempts first
	Attempts int          `json:"attempts"` // how many attempts are in them

	// Counts are of the groups in each state, whichever was asked for.
	Counts ErrorCounts `json:"counts"`

	// The trends of all groups begin at From, and each of their numbers is of a time
	// of Step. They are zero when there are no groups.
	From time.Time     `json:"trend_from,omitzero"`
	Step time.Duration `json:"trend_step,omitzero"`

	// CutOff says that there may be more, older ones, or groups of fewer attempts.
	CutOff bool `json:"cut_off,omitempty"`
}

// ErrorCounts says how many groups are in each state.
type ErrorCounts struct {
	Open     int `json:"open"` // without those that returned
	Returned int `json:"returned"`
	Resolved int `json:"resolved"`
	Muted    int `json:"muted"`
}

func (c *ErrorCounts) add(s ErrorState) {
	*map[ErrorState]*int{ErrorsOpen: &c.Open, ErrorsReturned: &c.Returned, ErrorsResolved: &c.Resolved, ErrorsMuted: &c.Muted}[s]++
}

// ErrorGroup are attempts with errors that are alike.
type ErrorGroup struct {
	Key      string    `json:"key,omitempty"`   // what the group is known by, of 16 hexadecimal digits: the same as long as its kind, class, place and pattern are
	Class    string    `json:"class"`           // see [stint.Failure]
	Place    string    `json:"place,omitempty"` // see [PlaceOf]; empty for what says no place
	Kind     string    `json:"kind"`
	Pattern  string    `json:"pattern,omitempty"` // what their messages have in common: see [NormalizeMessage]
	Attempts int       `json:"attempts"`
	Jobs     int       `json:"jobs"`
	First    time.Time `json:"first"` // when the first of them ended, and the last
	Last     time.Time `json:"last"`
	Message  string    `json:"message,omitempty"` // of the last, at most 1,000 characters
	Job      stint.ID  `json:"job"`               // of the last

	// Trend says how many attempts ended in each of [TrendSteps] times of equal length:
	// see [ErrorReport].
	Trend []int `json:"trend"`

	// State is what people decided, and what came of it: when, by whom, and why.
	State ErrorState `json:"state"`
	At    time.Time  `json:"state_since,omitzero"` // of one that returned, when it was resolved
	By    string     `json:"state_by,omitempty"`
	Why   string     `json:"state_why,omitempty"`

	// IDs are all of its jobs, the newest first, for operations on them.
	IDs []stint.ID `json:"-"`
}

// mark gives the group its state.
func (g *ErrorGroup) mark(m ErrorMark) {
	g.State, g.At, g.By, g.Why = cmp.Or(m.State, ErrorsOpen), m.At, m.By, m.Why
	if g.State == ErrorsResolved && g.Last.After(m.At) {
		g.State = ErrorsReturned
	}
}

// Is reports whether it is in a state, or in what a filter means by that.
func (g *ErrorGroup) Is(s ErrorState) bool {
	return s == "" || g.State == s || s == ErrorsOpen && g.State == ErrorsReturned
}

// FailedAttempt is one that failed or was lost.
type FailedAttempt struct {
	Job            stint.ID
	Kind           string
	Class, Message string
	Stack          string // or a part of it that holds the panic
	Ended          time.Time
}

// ErrorsFound are what a store found for a filter.
type ErrorsFound struct {
	Attempts []FailedAttempt
	More     bool        // there may be more that fit
	Now      time.Time   // by the store's clock
	Marks    []ErrorMark // of all groups
}

// GroupErrors groups the first [MaxErrors] attempts, for stores. It is the one place that
// says which errors are alike.
func GroupErrors(found ErrorsFound, f ErrorFilter) ErrorReport {
	attempts, more := found.Attempts, found.More
	if len(attempts) > MaxErrors {
		attempts, more = attempts[:MaxErrors], true
	}
	type id struct{ kind, class, place, pattern string }
	type group struct {
		ErrorGroup
		jobs map[stint.ID]bool
	}
	r := ErrorReport{Groups: []ErrorGroup{}, CutOff: more}
	groups, patterns := map[id]*group{}, map[string]string{} // many messages are the same
	r.From, r.Step = trendOf(attempts, f.Since, found.Now)
	for _, a := range attempts {
		pattern, known := patterns[a.Message]
		if !known {
			pattern = NormalizeMessage(a.Message)
			patterns[a.Message] = pattern
		}
		k := id{a.Kind, a.Class, PlaceOf(a.Stack), pattern}
		g := groups[k]
		if g == nil {
			g = &group{ErrorGroup{Class: k.class, Place: k.place, Kind: k.kind, Pattern: k.pattern, First: a.Ended, Trend: make([]int, TrendSteps)}, map[stint.ID]bool{}}
			g.Key = keyOf(k.kind, k.class, k.place, k.pattern)
			groups[k] = g
		}
		g.Attempts++
		g.Trend[min(max(0, int(a.Ended.Sub(r.From)/r.Step)), TrendSteps-1)]++
		g.jobs[a.Job] = true
		if a.Ended.Before(g.First) {
			g.First = a.Ended
		}
		if c := a.Ended.Compare(g.Last); c > 0 || c == 0 && a.Job > g.Job {
			g.Last, g.Message, g.Job = a.Ended, a.Message, a.Job
		}
	}
	marks := map[string]ErrorMark{}
	for _, m := range found.Marks {
		marks[m.Key] = m
	}
	for _, g := range groups {
		if f.Key != "" && g.Key != f.Key {
			continue
		}
		g.mark(marks[g.Key])
		r.Counts.add(g.State)
		if !g.Is(f.State) {
			continue
		}
		g.IDs = slices.Sorted(maps.Keys(g.jobs))
		slices.Reverse(g.IDs)
		g.Jobs = len(g.IDs)
		r.Attempts += g.Attempts
		r.Groups = append(r.Groups, g.ErrorGroup)
	}
	slices.SortFunc(r.Groups, func(a, b ErrorGroup) int {
		return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), b.Last.Compare(a.Last), cmp.Compare(a.Key, b.Key))
	})
	if len(r.Groups) > MaxErrorGroups {
		r.Groups, r.CutOff = r.Groups[:MaxErrorGroups], true
	}
	return r
}

// keyOf is what a group is known by. It must stay the same: marks are kept under it, and
// people have it in links.
func keyOf(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d %s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:keyBytes])
}

// TrendSteps is how many numbers a trend has.
const TrendSteps = 24

// trendOf returns when trends begin, and how long each of their steps is, in whole seconds.
// They end now. They begin at a time that was asked for, or else with the first attempt.
func trendOf(attempts []FailedAttempt, from, now time.Time) (time.Time, time.Duration) {
	if len(attempts) == 0 {
		return time.Time{}, 0
	}
	if from.IsZero() {
		from = slices.MinFunc(attempts, func(a, b FailedAttempt) int { return a.Ended.Compare(b.Ended) }).Ended
	}
	step := now.Sub(from)/TrendSteps + time.Second - 1
	return from, max(time.Second, step.Truncate(time.Second))
}

// PlaceOf is where the panic happened that a stack is of, as "pkg.Function
// (file.go:12)": the first function below it that is not the runtime's. Empty when
// the stack does not say that.
func PlaceOf(stack string) string {
	_, below, found := strings.Cut("\n"+stack, "\npanic(")
	if !found {
		return ""
	}
	lines := strings.Split(below, "\n")
	for i := 2; i+1 < len(lines); i += 2 { // the first two are the panic's own
		function, at := lines[i], strings.TrimSpace(lines[i+1])
		if strings.HasPrefix(function, "runtime.") {
			continue
		}
		if args := strings.LastIndexByte(function, '('); args > 0 {
			function = function[:args]
		}
		at, _, _ = strings.Cut(at, " ") // +0x1d
		if !strings.Contains(at, ".go:") || strings.HasPrefix(function, "created by ") {
			return "" // it was cut off, or there is none
		}
		return path.Base(function) + " (" + path.Base(at) + ")"
	}
	return ""
}
