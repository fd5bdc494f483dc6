package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/report"
)

// AnyErrors is the state of a filter for groups of errors in any state.
const AnyErrors = "all"

// ListErrors groups what went wrong.
var ListErrors = declare(&Op[ErrorsInput, report.ErrorReport]{
	Decl: Decl{
		Name: "errors", Method: http.MethodGet, Path: "/errors", Tag: figures, Summary: "Group what went wrong by kind, class, place and message",
		Doc: "Attempts that failed or were lost, also those of jobs that were tried again: the newest 10,000 that fit. `cut_off` says that there may be more. A panic has a place, the function that panicked. " +
			"Messages count without what differs from one to the next, such as numbers and ids: that is the `pattern`. Each group has a `key` that stays the same, and a `trend` of 24 numbers of attempts: " +
			"the first is of the `trend_step` from `trend_from` on, and the last ends now. Groups that are resolved or muted are left out unless `state` or `key` ask for them; `counts` has them all. " +
			"A group that was resolved has `returned` when such an attempt failed after that, as far as the other parameters let it be seen. " +
			"A server that hides arguments from viewers hides messages, patterns and keys, too.",
	},
	do: func(ctx context.Context, l *Local, in *ErrorsInput) (report.ErrorReport, error) {
		f, blind := report.ErrorFilter{Kind: in.Kind, Queue: in.Queue, Key: in.Key}, l.blind(ctx)
		if blind && f.Key != "" {
			return report.ErrorReport{}, &ForbiddenError{Needs: guard.Operator} // a key is made of what messages say
		}
		if err := l.read(ctx, "query", moment{"since", in.Since, &f.Since}); err != nil {
			return report.ErrorReport{}, err
		}
		var err error
		if f.State, err = in.InState(); err == nil && f.Key != "" {
			err = report.CheckErrorKey(f.Key)
		}
		if err != nil {
			return report.ErrorReport{}, inError("query", err)
		}
		found, err := l.Store.Errors(ctx, f)
		if blind {
			for i := range found.Groups {
				g := &found.Groups[i]
				g.Message, g.Pattern, g.Key = "", "", ""
			}
		}
		return found, err
	},
})

// ErrorsInput chooses errors.
type ErrorsInput struct {
	Kind  string `query:"kind" maxLength:"255"`
	Queue string `query:"queue" maxLength:"255" doc:"Where the attempt was"`
	Since When   `query:"since" doc:"Only what ended at this instant or later"`
	Key   string `query:"key" maxLength:"16" doc:"Only the group of this key, in any state unless one is given"`
	State string `query:"state" enum:"open,returned,resolved,muted,all" doc:"Only groups in this state: open ones and those that returned unless given"`
}

func (in ErrorsInput) check() error {
	return checkNames("query", "kind", in.Kind, "queue", in.Queue)
}

// InState returns the state of the groups that are meant; empty for any.
func (in ErrorsInput) InState() (report.ErrorState, error) {
	switch {
	case in.State == AnyErrors || in.State == "" && in.Key != "":
		return "", nil
	case in.State == "":
		return report.ErrorsOpen, nil
	}
	for _, s := range report.ErrorStates {
		if in.State == string(s) {
			return s, nil
		}
	}
	return "", valid.Invalid("state", "there is no state %q of errors: they are open, returned, resolved or muted, and all are shown as all", in.State)
}

// ErrorsOf is a filter as a request has it.
func ErrorsOf(f report.ErrorFilter) ErrorsInput {
	in := ErrorsInput{Kind: f.Kind, Queue: f.Queue, Since: At(f.Since), Key: f.Key, State: string(f.State)}
	if f.State == "" {
		in.State = AnyErrors
	}
	return in
}

// ErrorsKey is where the key of a group of errors stands.
type ErrorsKey struct {
	Key string `path:"key" maxLength:"16"`
}

func (k ErrorsKey) check() error { return inError("path", report.CheckErrorKey(k.Key)) }

// ErrorsMark is a group of errors, and why something is decided about it.
type ErrorsMark struct {
	ErrorsKey
	Body ErrorsWhy
}

func (m ErrorsMark) check() error {
	if err := m.ErrorsKey.check(); err != nil {
		return err
	}
	return checkNames("body", "kind", m.Body.Kind)
}

// ErrorsWhy says why, and helps to find the group.
type ErrorsWhy struct {
	Kind string `json:"kind,omitempty" maxLength:"255" doc:"The kind of the group: it is looked for further back among the errors of that kind alone"`
	Why
}

// ErrNoErrors says that there is no group of errors of a key.
var ErrNoErrors = errors.New("no group among the newest errors has the key")

// ResolveErrors hides a group of errors until it returns, or is [ErrNoErrors].
var ResolveErrors = declare(&Op[ErrorsMark, report.ErrorMark]{
	Decl: Decl{
		Name: "errors resolve", Method: http.MethodPost, Path: "/errors/{key}/resolve", Needs: guard.Operator, Tag: figures, Summary: "Hide a group of errors until such an attempt fails again",
		Doc: "When an attempt fails so after this moment, by the clock of the database, the group is shown as returned. One that returned can be resolved again. Jobs are left as they are.",
	},
	do: func(ctx context.Context, l *Local, in *ErrorsMark) (report.ErrorMark, error) {
		return l.markErrors(ctx, in, report.ErrorsResolved)
	},
	said: func(in *ErrorsMark, _ report.ErrorMark) string { return "errors " + in.Key + " are resolved" },
})

// MuteErrors hides a group of errors, or is [ErrNoErrors].
var MuteErrors = declare(&Op[ErrorsMark, report.ErrorMark]{
	Decl: Decl{
		Name: "errors mute", Method: http.MethodPost, Path: "/errors/{key}/mute", Needs: guard.Operator, Tag: figures, Summary: "Hide a group of errors, whatever fails, until it is reopened",
		Doc: "Its attempts are still counted. Jobs are left as they are.",
	},
	do: func(ctx context.Context, l *Local, in *ErrorsMark) (report.ErrorMark, error) {
		return l.markErrors(ctx, in, report.ErrorsMuted)
	},
	said: func(in *ErrorsMark, _ report.ErrorMark) string { return "errors " + in.Key + " are muted" },
})

// markErrors marks a group that there is.
func (l *Local) markErrors(ctx context.Context, in *ErrorsMark, s report.ErrorState) (report.ErrorMark, error) {
	found, err := l.Store.Errors(ctx, report.ErrorFilter{Key: in.Key, Kind: in.Body.Kind})
	if err != nil {
		return report.ErrorMark{}, err
	}
	if len(found.Groups) == 0 {
		return report.ErrorMark{}, fmt.Errorf("%w %s", ErrNoErrors, in.Key)
	}
	return l.Store.MarkErrors(ctx, report.ErrorMark{Key: in.Key, State: s, By: l.who(ctx).Name, Why: in.Body.Why.Why})
}

// ReopenErrors takes back that a group of errors was resolved or muted.
var ReopenErrors = declare(&Op[ErrorsKey, Changed]{
	Decl: Decl{
		Name: "errors reopen", Method: http.MethodPost, Path: "/errors/{key}/reopen", Needs: guard.Operator, Tag: figures, Summary: "Take back that a group of errors was resolved or muted",
		Doc: "Of a group that was neither nothing is changed.",
	},
	do: func(ctx context.Context, l *Local, in *ErrorsKey) (Changed, error) {
		return changed(l.Store.ReopenErrors(ctx, in.Key))
	},
	said: func(in *ErrorsKey, c Changed) string {
		return "errors " + in.Key + " " + c.either("are open again", "were neither resolved nor muted")
	},
})
