package ops

import (
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// Describe says in the document of an API how types of the language are written that do
// not show it themselves.
func Describe(schemas huma.Registry) {
	for as, of := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[store.EngineID]():     reflect.TypeFor[string](),
		reflect.TypeFor[store.ScheduleInfo](): reflect.TypeFor[Schedule](),
		reflect.TypeFor[stint.KindInfo]():     reflect.TypeFor[Kind](),
		reflect.TypeFor[report.Durations]():   reflect.TypeFor[Durations](),
		reflect.TypeFor[time.Duration]():      reflect.TypeFor[nanoseconds](),

		reflect.TypeFor[stint.State]():        reflect.TypeFor[states](),
		reflect.TypeFor[stint.Outcome]():      reflect.TypeFor[outcomes](),
		reflect.TypeFor[stint.CancelStatus](): reflect.TypeFor[cancelled](),
		reflect.TypeFor[stint.RerunStatus]():  reflect.TypeFor[rerun](),
		reflect.TypeFor[store.DeleteStatus](): reflect.TypeFor[deleted](),
		reflect.TypeFor[store.ChangeResult](): reflect.TypeFor[changeResults](),
		reflect.TypeFor[report.Severity]():    reflect.TypeFor[severities](),
		reflect.TypeFor[report.ErrorState]():  reflect.TypeFor[errorStates](),
	} {
		schemas.RegisterTypeAlias(as, of)
	}
}

// Types that are described as one of a few texts, or as a number of a unit.
type (
	states        string
	outcomes      string
	cancelled     string
	rerun         string
	deleted       string
	changeResults string
	severities    string
	errorStates   string
	nanoseconds   int64
)

func (states) Schema(huma.Registry) *huma.Schema { return oneOf(store.States...) }

func (outcomes) Schema(huma.Registry) *huma.Schema {
	var all []string
	for o := stint.OutcomeCompleted; o.String() != stint.Outcome(0).String(); o++ {
		all = append(all, o.String())
	}
	return oneOf(all...)
}

func (cancelled) Schema(huma.Registry) *huma.Schema {
	return oneOf(stint.CancelledNow, stint.CancelRequested, stint.CancelTooLate, stint.CancelNotFound)
}

func (rerun) Schema(huma.Registry) *huma.Schema {
	return oneOf(stint.RerunReady, stint.RerunScheduled, stint.RerunRecovered, stint.RerunRecoveredBefore, stint.RerunAvailable,
		stint.RerunBlocked, stint.RerunRunning, stint.RerunNotUnique, stint.RerunNotFound)
}

func (deleted) Schema(huma.Registry) *huma.Schema {
	return oneOf(store.DeletedNow, store.DeleteNotFinal, store.DeleteNotFound)
}

func (changeResults) Schema(huma.Registry) *huma.Schema {
	return oneOf(store.ChangeDone, store.ChangeFailed, store.ChangeUnknown)
}

func (severities) Schema(huma.Registry) *huma.Schema {
	return oneOf(report.SeverityProblem, report.SeverityWarning, report.SeverityNote)
}

func (errorStates) Schema(huma.Registry) *huma.Schema { return oneOf(report.ErrorStates...) }

func (nanoseconds) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Description: "Nanoseconds"}
}

// oneOf describes a text that is one of a few.
func oneOf[T ~string](texts ...T) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, t := range texts {
		s.Enum = append(s.Enum, string(t))
	}
	return s
}

// Kind is how a [stint.KindInfo] is written.
type Kind struct {
	Name        string    `json:"name"`
	Queue       string    `json:"queue"`
	Priority    int       `json:"priority"`
	Retry       string    `json:"retry" doc:"What happens after a failure, as a job has it: fixed:2:1s"`
	Timeout     string    `json:"timeout,omitempty" doc:"Bounds each attempt: 30s"`
	Tags        []string  `json:"tags,omitempty"`
	MaxLosses   *int      `json:"max_losses,omitempty"`
	StartWithin string    `json:"start_within,omitempty" doc:"How long after they are due its jobs may begin"`
	Unique      string    `json:"unique,omitempty"`
	Limits      []string  `json:"limits,omitempty"`
	Sealed      []string  `json:"sealed,omitempty" doc:"JSON pointers to the parts of the arguments that are stored encrypted; one empty pointer for all of them"`
	Redacted    []string  `json:"redacted,omitempty" doc:"JSON pointers to the parts of the arguments that pages, the API and the command show as [redacted]; one empty pointer for all of them"`
	Declared    time.Time `json:"declared,omitzero"`
}
