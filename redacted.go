package stint

import (
	"slices"
	"strings"

	"github.com/stint-go/stint/internal/redact"
	"github.com/stint-go/stint/internal/valid"
)

// Redact keeps parts of the arguments of a kind's jobs off screens: those that JSON pointers select, or all of them
// without any. They are stored in clear, and handlers get them in clear. The pages of the dashboard, the API and the
// command show "[redacted]" in their place, to everyone:
//
//	var Sync = stint.NewKind[SyncArgs]("sync", stint.Redact("/token", "/card/number"))
//
// It is for what does not belong on a screen. Who reads the database sees it, as do [Client.Job] and [Client.Await] of
// a program that does: what is secret there as well, is [Sealed]. A kind may have both, also for the same part.
//
// What a pointer selects may be absent, but [NewKind] panics if the type of the arguments has no member of that name.
// Engines write the pointers into the database with the declaration of the kind, so that programs that do not know it
// redact as well: start an engine that declares them before producers enqueue. The engine that starts last decides.
//
// Results, steps, metadata, errors, logs, signals and questions are shown as they are. A limit by what is redacted is
// refused with [ErrInvalid], since its key would be shown, unless the part is sealed as well. So is a job that has
// "[redacted]" where something is redacted: it was copied from a screen.
func Redact(pointers ...string) Option {
	if len(pointers) == 0 {
		pointers = []string{wholeArgs}
	}
	return func(j *NewJob) { j.Redacted = slices.Clone(pointers) }
}

// checkRedacted checks what the job says of redaction.
func (j NewJob) checkRedacted() error {
	if j.Redacted == nil {
		return nil
	}
	if err := checkParts("redacted", j.Redacted); err != nil {
		return err
	}
	for _, text := range j.Limits {
		_, text = LimitCost(text)
		_, pointer, keyed := strings.Cut(text, by)
		isIn := func(part string) bool { return within(pointer, part) }
		if keyed && slices.ContainsFunc(j.Redacted, func(part string) bool { return redact.Overlap(pointer, part) }) && !slices.ContainsFunc(j.Sealed, isIn) {
			return valid.Invalid("limits", "a limit by %s would show what is redacted: limit by something else, or seal that, too", pointer)
		}
	}
	if pointer, ok := redact.Marked(j.Args, j.Redacted); ok {
		return valid.Invalid("args", "what they have%s was taken out before they were shown: give the value itself", at(pointer))
	}
	return nil
}
