package report

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
)

// ErrorAnalyst groups what goes wrong.
type ErrorAnalyst interface {
	// Errors groups attempts that failed or were lost, those of jobs that were
	// tried again too, by the class of the error, where in the code it happened, and
	// the kind. It looks at the newest [MaxErrors] that fit, and for these at no
	// more than the newest five times as many attempts that failed or were lost,
	// in the order of their jobs or of the attempts: so it costs the same however
	// much goes wrong, and where it ends so the report says that it is cut off.
	Errors(ctx context.Context, f ErrorFilter) (ErrorReport, error)
}

// MaxErrors is the most attempts that are grouped, and MaxErrorGroups the most groups
// that are returned.
const (
	MaxErrors      = 10_000
	MaxErrorGroups = 1_000
)

// ErrorFilter says which attempts are meant: those that fit all of its fields. A
// zero field does not restrict.
type ErrorFilter struct {
	Kind  string
	Queue string    // where the attempt was
	Since time.Time // when it ended, or later
}

// Look returns at how many of the newest attempts that failed or were lost a store
// looks.
func (f ErrorFilter) Look() int {
	if f == (ErrorFilter{}) {
		return MaxErrors
	}
	return 5 * MaxErrors
}

// ErrorReport says what went wrong.
type ErrorReport struct {
	Groups   []ErrorGroup `json:"groups"`   // those of the most attempts first
	Attempts int          `json:"attempts"` // how many attempts are in them

	// CutOff says that there may be more, older ones, or groups of fewer attempts.
	CutOff bool `json:"cut_off,omitempty"`
}

// ErrorGroup are attempts with errors that are alike.
type ErrorGroup struct {
	Class    string    `json:"class"`           // see [stint.Failure]
	Place    string    `json:"place,omitempty"` // see [PlaceOf]; empty for what says no place
	Kind     string    `json:"kind"`
	Attempts int       `json:"attempts"`
	Jobs     int       `json:"jobs"`
	First    time.Time `json:"first"` // when the first of them ended, and the last
	Last     time.Time `json:"last"`
	Message  string    `json:"message,omitempty"` // of the last, at most 1,000 characters
	Job      stint.ID  `json:"job"`               // of the last

	// IDs are all of its jobs, the newest first, for operations on them.
	IDs []stint.ID `json:"-"`
}

// FailedAttempt is one that failed or was lost.
type FailedAttempt struct {
	Job            stint.ID
	Kind           string
	Class, Message string
	Stack          string // or a part of it that holds the panic
	Ended          time.Time
}

// GroupErrors groups the first [MaxErrors] attempts, for stores. More says that there
// may be more that fit.
func GroupErrors(attempts []FailedAttempt, more bool) ErrorReport {
	if len(attempts) > MaxErrors {
		attempts, more = attempts[:MaxErrors], true
	}
	type key struct{ class, place, kind string }
	type group struct {
		ErrorGroup
		jobs map[stint.ID]bool
	}
	groups := map[key]*group{}
	for _, a := range attempts {
		k := key{a.Class, PlaceOf(a.Stack), a.Kind}
		g := groups[k]
		if g == nil {
			g = &group{ErrorGroup{Class: k.class, Place: k.place, Kind: k.kind, First: a.Ended}, map[stint.ID]bool{}}
			groups[k] = g
		}
		g.Attempts++
		g.jobs[a.Job] = true
		if a.Ended.Before(g.First) {
			g.First = a.Ended
		}
		if c := a.Ended.Compare(g.Last); c > 0 || c == 0 && a.Job > g.Job {
			g.Last, g.Message, g.Job = a.Ended, a.Message, a.Job
		}
	}
	r := ErrorReport{Groups: []ErrorGroup{}, Attempts: len(attempts), CutOff: more}
	for _, g := range groups {
		g.IDs = slices.Sorted(maps.Keys(g.jobs))
		slices.Reverse(g.IDs)
		g.Jobs = len(g.IDs)
		r.Groups = append(r.Groups, g.ErrorGroup)
	}
	slices.SortFunc(r.Groups, func(a, b ErrorGroup) int {
		return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), b.Last.Compare(a.Last), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Kind, b.Kind))
	})
	if len(r.Groups) > MaxErrorGroups {
		r.Groups, r.CutOff = r.Groups[:MaxErrorGroups], true
	}
	return r
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
