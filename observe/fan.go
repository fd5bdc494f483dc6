package observe

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
)

// Fan joins listeners: each gets every event, in the order given. If one panics, the others still
// get the event, and an event of the type trouble about the panic. Nil listeners are left out.
func Fan(listeners ...func(event.Event)) func(event.Event) {
	all := slices.DeleteFunc(slices.Clone(listeners), func(l func(event.Event)) bool { return l == nil })
	return func(e event.Event) {
		for i, l := range all {
			err := tell(l, e)
			if err == nil {
				continue
			}
			trouble := event.Event{
				Type: event.EventTrouble, Time: e.Time, Engine: e.Engine, Instance: e.Instance,
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

func tell(l func(event.Event), e event.Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &stint.PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	l(e)
	return nil
}
