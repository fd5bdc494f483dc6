package stint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint/retry"
)

var errPaper, errInk = errors.New("no paper"), errors.New("no ink")

// A name is declared once in a program, so that tests may be repeated.
var (
	_ = ErrorClass("no_paper", errPaper)
	_ = ErrorClass("stationery", errPaper, errInk)
	_ = ErrorClassOf[*fs.PathError]("path")
	_ = ErrorClassOf("path of a", func(e *fs.PathError) bool { return e.Path == "a" }, func(e *fs.PathError) bool { return e.Path == "A" })
	_ = ErrorClassOf("touchy", func(e *touchyError) bool { panic("do not touch") })
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
	for _, err := range []error{none, fmt.Errorf("a: %w", none), errors.Join(io.EOF, none), &PanicError{Value: none}} {
		if end := (Ending{}); AsEnding(err, &end) {
			t.Errorf("%#v wants to end as %+v", err, end)
		}
		x := Conclude(&Entry{Job: Job{Attempt: 1}}, Ending{Outcome: OutcomeFailed, Err: err}, time.Now(), 0)
		if x.Final || x.Error == nil || x.Error.Message == "" {
			t.Errorf("%#v makes %+v", err, x)
		}
	}
	var end Ending
	if err := errors.Join(Snooze(time.Hour), none); !AsEnding(err, &end) || end.Snooze != time.Hour {
		t.Errorf("what was asked for before is %+v", end)
	}
}

func TestErrorsAreNamedByWhatWasDeclaredAndByWhatIsInside(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string // the first is the one that is stored
	}{
		{io.EOF, "errors.errorString"},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", &InvalidError{})), "stint.InvalidError"},
		{errors.Join(nil, &InvalidError{}, io.EOF), "stint.InvalidError"},
		{NoRetry(&InvalidError{}), "stint.InvalidError"},
		{&PanicError{Value: io.EOF}, "panic"},
		{&PanicError{Value: "oh"}, "panic"},
		{&PanicError{Value: &InvalidError{}}, "panic stint.InvalidError"},
		{fmt.Errorf("%w: %w", ErrTimeout, io.EOF), "timeout"},
		{retry.ErrLost, "lost"},

		{errPaper, "no_paper stationery"},
		{NoRetry(fmt.Errorf("print: %w", errInk)), "stationery"},
		{errors.Join(io.EOF, errPaper), "no_paper stationery"},
		{fmt.Errorf("%w: %w", ErrTimeout, errInk), "timeout stationery"},
		{&PanicError{Value: errInk}, "panic stationery"},
		{&fs.PathError{Path: "a", Err: &InvalidError{}}, "path path of a stint.InvalidError"},
		{&fs.PathError{Path: "A", Err: io.EOF}, "path path of a"},
		{&fs.PathError{Path: "b", Err: errInk}, "stationery path"},
		{&touchyError{}, "stint.touchyError"},
		{(*fragileError)(nil), "stint.fragileError"},
		{fmt.Errorf("a: %w", errors.Join(errPaper, (*fragileError)(nil))), "no_paper stationery"},
		{&PanicError{Value: (*fragileError)(nil)}, "panic stint.fragileError"},
	} {
		got := Classes(c.err)
		if strings.Join(got, " ") != c.want {
			t.Errorf("the classes are %v, want %s", got, c.want)
		}
		if f := describe(c.err, ""); f.Class != got[0] || len(got) > 1 && !slices.Equal(f.Classes, got) || len(got) == 1 && f.Classes != nil {
			t.Errorf("stored are %q and %q of %q", f.Class, f.Classes, got)
		}
	}
	if Classes(nil) != nil {
		t.Error("no error has classes")
	}
}

// The error of a failed attempt is a user's, and so are its methods: what they
// do must not end the engine.
func TestAnErrorThatPanicsIsDescribedAllTheSame(t *testing.T) {
	x := Conclude(&Entry{Job: Job{Attempt: 1}}, Ending{Outcome: OutcomeFailed, Err: &touchyError{}}, time.Time{}, 0)
	if x.Error.Class != "stint.touchyError" || !strings.Contains(x.Error.Message, "do not touch") {
		t.Errorf("it is stored as %+v", x.Error)
	}
}

func TestADeclarationThatCanNeverBeRightPanics(t *testing.T) {
	for _, c := range []struct {
		declare func()
		want    string
	}{
		{func() { ErrorClass("no_paper", errPaper) }, `"no_paper" is declared already`},
		{func() { ErrorClass("panic", errPaper) }, `"panic" is declared already`},
		{func() { ErrorClassOf[*InvalidError]("path") }, `"path" is declared already`},
		{func() { ErrorClass("", errPaper) }, "the name is empty"},
		{func() { ErrorClass("a\nb", errPaper) }, "control character"},
		{func() { ErrorClass("errors.errorString", errPaper) }, "every error that errors.New makes"},
		{func() { ErrorClass("nothing") }, "it has no error"},
		{func() { ErrorClass("nil", nil) }, "nil for one"},
		{func() { ErrorClassOf[*InvalidError]("nil", nil) }, "a function is nil"},
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

// Packages are initialised one after the other, but programs may declare
// later, beside engines that look.
func TestClassesMayBeDeclaredWhileOthersLook(t *testing.T) {
	before := len(declared())
	defer func(list []class) { classes.list.Store(&list) }(declared())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { ErrorClass(fmt.Sprint("concurrent ", i), io.ErrNoProgress) })
		wg.Go(func() { Classes(io.ErrNoProgress) })
	}
	wg.Wait()
	if n := len(declared()) - before; n != 20 || len(Classes(io.ErrNoProgress)) != 20 {
		t.Errorf("%d classes were declared, %d are found", n, len(Classes(io.ErrNoProgress)))
	}
}
