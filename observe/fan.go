package observe

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/stint-go/stint"
)

// Fan joins listeners: each hears every event, in the order given. One that
// panics keeps nothing from the others, which are told of it as trouble; nil
// ones are left out.
func Fan(listeners ...func(stint.Event)) func(stint.Event) {
	all := slices.DeleteFunc(slices.Clone(listeners), func(l func(stint.Event)) bool { return l == nil })
	return func(e stint.Event) {
		for i, l := range all {
			err := tell(l, e)
			if err == nil {
				continue
			}
			trouble := stint.Event{
				Type: stint.EventTrouble, Time: e.Time, Engine: e.Engine, Instance: e.Instance,
				Doing: fmt.Sprintf("tell listener %d of an event of the type %s", i+1, e.Type), About: string(e.Type), Err: err,
			}
			for k, other := range all {
				if k != i {
					_ = tell(other, trouble)
				}
			}
		}
	}
}

func tell(l func(stint.Event), e stint.Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &stint.PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	l(e)
	return nil
}
