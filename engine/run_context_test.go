package engine

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stint-go/stint"
)

func TestALifeEndsWithItsParentAndForItsCause(t *testing.T) {
	for name, ask := range map[string]func(*runContext){
		"nobody asked before": func(*runContext) {},
		"somebody waits":      func(l *runContext) { l.Done() },
	} {
		parent, cancel := context.WithCancelCause(t.Context())
		l := &runContext{parent: parent}
		if ask(l); l.Err() != nil || context.Cause(l) != nil {
			t.Errorf("%s: it begins with %v, %v", name, l.Err(), context.Cause(l))
		}
		child, forget := context.WithCancel(context.WithValue(l, attemptKey{}, 1))
		defer forget()
		cancel(stint.ErrFenced)
		<-l.Done()
		<-child.Done()
		if !errors.Is(l.Err(), context.Canceled) || context.Cause(l) != stint.ErrFenced || context.Cause(child) != stint.ErrFenced {
			t.Errorf("%s: it ended with %v, %v, its child with %v", name, l.Err(), context.Cause(l), context.Cause(child))
		}
	}
}

func TestALifeThatIsClosedHasEndedWhoeverAsksAndWhenever(t *testing.T) {
	l := &runContext{parent: t.Context()}
	l.close()
	if l.Err() != context.Canceled || context.Cause(l) != context.Canceled {
		t.Errorf("it ended with %v, %v", l.Err(), context.Cause(l))
	}
	<-l.Done()
	for range 200 {
		l := &runContext{parent: t.Context()}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { <-l.Done() })
		}
		all.Go(l.close)
		all.Wait() // hangs where somebody waits for what nobody ends
	}
}

func TestALifeIsCancelledForACauseOfItsOwn(t *testing.T) {
	l := &runContext{parent: t.Context()}
	l.cancellable().cancel(stint.ErrCancelled)
	l.close()
	if <-l.Done(); context.Cause(l) != stint.ErrCancelled {
		t.Errorf("the cause is %v", context.Cause(l))
	}
}
