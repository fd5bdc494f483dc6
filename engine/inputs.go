package engine

// inputs are the channels from the claim stage to the slots and the steward.
type inputs struct {
	ready   chan *task // to run
	alone   chan *task // to run one at a time
	foreign chan *task // of kinds that this engine does not know
}

// empty tells whether nothing waits for a slot.
func (in inputs) empty() bool { return in.waiting() == 0 }

// waiting is how many tasks wait for a slot.
func (in inputs) waiting() int { return len(in.ready) + len(in.alone) }

// newInputs makes them with room for more than is ever claimed, so that the
// claim stage does not wait on its own output.
func newInputs(room int) inputs {
	return inputs{ready: make(chan *task, room), alone: make(chan *task, room), foreign: make(chan *task, room)}
}

// send puts a task where it belongs. There is always room.
func (in inputs) send(t *task) {
	switch {
	case t.trade == nil:
		in.foreign <- t
	case t.entry.Suspect >= alone:
		in.alone <- t
	default:
		in.ready <- t
	}
}

func (in inputs) close() {
	close(in.foreign)
	close(in.alone)
	close(in.ready)
}

// next is the next task for a slot; nil says that none will come.
func (in *inputs) next() *task {
	for in.alone != nil {
		select {
		case t, ok := <-in.alone:
			if ok {
				return t
			}
			in.alone = nil
		case t, ok := <-in.ready:
			if ok {
				return t
			}
			// Closed, as alone is by now: what that still holds comes first.
			return <-in.alone
		}
	}
	return <-in.ready
}
