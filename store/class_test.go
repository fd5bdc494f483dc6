package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

var errPaper, errInk = errors.New("no paper"), errors.New("no ink")

// A name is declared once in a program, so that tests may be repeated.
var (
	_ = retry.ErrorClass("no_paper", errPaper)
	_ = retry.ErrorClass("stationery", errPaper, errInk)
	_ = retry.ErrorClassOf[*fs.PathError]("path")
	_ = retry.ErrorClassOf("path of a", func(e *fs.PathError) bool { return e.Path == "a" }, func(e *fs.PathError) bool { return e.Path == "A" })
	_ = retry.ErrorClassOf("touchy", func(e *touchyError) bool { panic("do not touch") })
)

type touchyError struct{}

func (*touchyError) Error() string { panic("do not touch") }

// fragileError is one whose methods panic while there is nothing in it, as a nil
// pointer's do that was returned as an error.
type fragileError struct{ cause error }

func (e *fragileError) Error() string { return "fragile: " + e.cause.Error() }
func (e *fragileError) Unwrap() error { return e.cause }

func TestAnErrorThatCannotBeAskedIsAFailureLikeAnyOther(t *testing.T) {
	none := (*fragileError)(nil)
	for _, err := range []error{none, fmt.Errorf("a: %w", none), errors.Join(io.EOF, none), &stint.PanicError{Value: none}} {
		if end := (Result{}); AsResult(err, &end) {
			t.Errorf("%#v wants to end as %+v", err, end)
		}
		x := Conclude(&Entry{Job: stint.Job{Attempt: 1}}, Result{Outcome: stint.OutcomeFailed, Err: err}, time.Now(), 0)
		if x.Final || x.Error == nil || x.Error.Message == "" {
			t.Errorf("%#v makes %+v", err, x)
		}
	}
	var end Result
	if err := errors.Join(stint.Snooze(time.Hour), none); !AsResult(err, &end) || end.Snooze != time.Hour {
		t.Errorf("what was asked for before is %+v", end)
	}
}

func TestErrorsAreNamedByWhatWasDeclaredAndByWhatIsInside(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string // the first is the one that is stored
	}{
		{io.EOF, "errors.errorString"},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", &stint.InvalidError{})), "stint.InvalidError"},
		{errors.Join(nil, &stint.InvalidError{}, io.EOF), "stint.InvalidError"},
		{stint.NoRetry(&stint.InvalidError{}), "stint.InvalidError"},
		{&stint.PanicError{Value: io.EOF}, "panic"},
		{&stint.PanicError{Value: "oh"}, "panic"},
		{&stint.PanicError{Value: &stint.InvalidError{}}, "panic stint.InvalidError"},
		{fmt.Errorf("%w: %w", stint.ErrTimeout, io.EOF), "timeout"},
		{retry.ErrLost, "lost"},

		{errPaper, "no_paper stationery"},
		{stint.NoRetry(fmt.Errorf("print: %w", errInk)), "stationery"},
		{errors.Join(io.EOF, errPaper), "no_paper stationery"},
		{fmt.Errorf("%w: %w", stint.ErrTimeout, errInk), "timeout stationery"},
		{&stint.PanicError{Value: errInk}, "panic stationery"},
		{&fs.PathError{Path: "a", Err: &stint.InvalidError{}}, "path path of a stint.InvalidError"},
		{&fs.PathError{Path: "A", Err: io.EOF}, "path path of a"},
		{&fs.PathError{Path: "b", Err: errInk}, "stationery path"},
		{&touchyError{}, "store.touchyError"},
		{(*fragileError)(nil), "store.fragileError"},
		{fmt.Errorf("a: %w", errors.Join(errPaper, (*fragileError)(nil))), "no_paper stationery"},
		{&stint.PanicError{Value: (*fragileError)(nil)}, "panic store.fragileError"},
	} {
		got := retry.ErrorClasses(c.err)
		if strings.Join(got, " ") != c.want {
			t.Errorf("the classes are %v, want %s", got, c.want)
		}
		if f := describe(c.err, ""); f.Class != got[0] || len(got) > 1 && !slices.Equal(f.Classes, got) || len(got) == 1 && f.Classes != nil {
			t.Errorf("stored are %q and %q of %q", f.Class, f.Classes, got)
		}
	}
	if retry.ErrorClasses(nil) != nil {
		t.Error("no error has classes")
	}
}

// The error of a failed attempt is a user's, and so are its methods: what they
// do must not end the engine.
func TestAnErrorThatPanicsIsDescribedAllTheSame(t *testing.T) {
	x := Conclude(&Entry{Job: stint.Job{Attempt: 1}}, Result{Outcome: stint.OutcomeFailed, Err: &touchyError{}}, time.Time{}, 0)
	if x.Error.Class != "store.touchyError" || !strings.Contains(x.Error.Message, "do not touch") {
		t.Errorf("it is stored as %+v", x.Error)
	}
}

func TestADeclarationThatCanNeverBeRightPanics(t *testing.T) {
	for _, c := range []struct {
		declare func()
		want    string
	}{
		{func() { retry.ErrorClass("no_paper", errPaper) }, `"no_paper" is declared already`},
		{func() { retry.ErrorClass("panic", errPaper) }, `"panic" is declared already`},
		{func() { retry.ErrorClassOf[*stint.InvalidError]("path") }, `"path" is declared already`},
		{func() { retry.ErrorClass("", errPaper) }, "the name is empty"},
		{func() { retry.ErrorClass("a\nb", errPaper) }, "control character"},
		{func() { retry.ErrorClass("errors.errorString", errPaper) }, "every error that errors.New makes"},
		{func() { retry.ErrorClass("nothing") }, "it has no error"},
		{func() { retry.ErrorClass("nil", nil) }, "nil for one"},
		{func() { retry.ErrorClassOf[*stint.InvalidError]("nil", nil) }, "a function is nil"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) || !strings.HasPrefix(got, "stint: ") {
					t.Errorf("it panics with %q, want %q", got, c.want)
				}
			}()
			c.declare()
		}()
	}
}
