package ops

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// withArgs are the types in which the arguments of jobs leave a store.
var withArgs = []reflect.Type{reflect.TypeFor[stint.JobInfo](), reflect.TypeFor[stint.Job](), reflect.TypeFor[stint.NewJob](), reflect.TypeFor[store.ScheduleTexts]()}

// holdsArgs reports whether a type has one of these in it.
func holdsArgs(of reflect.Type, seen map[reflect.Type]bool) bool {
	if slices.Contains(withArgs, of) {
		return true
	}
	if seen[of] {
		return false
	}
	seen[of] = true
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsArgs(of.Elem(), seen)
	case reflect.Struct:
		for f := range of.Fields() {
			if f.Type == reflect.TypeFor[json.RawMessage]() && f.Name == "Args" || holdsArgs(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

func TestWhateverAStoreAnswersWithArgumentsIsShownWithoutWhatIsRedacted(t *testing.T) {
	redacts := []string{"Await", "DueBy", "Fetch", "Job", "Jobs", "Schedule", "Schedules"}
	engines := []string{"Announced", "Held"} // of which people are shown the positions
	for m := range reflect.TypeFor[Store]().Methods() {
		for out := range m.Type.Outs() {
			if holdsArgs(out, map[reflect.Type]bool{}) && !slices.Contains(redacts, m.Name) && !slices.Contains(engines, m.Name) {
				t.Errorf("%s answers with arguments, and Shown lets them pass", m.Name)
			}
		}
	}
}
