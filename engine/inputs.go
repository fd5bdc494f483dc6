package engine

// inputs are the channels from the claim stage to the slots and the steward.
type inputs struct {
	ready   chan *task // to run
	alone   chan *task // to run one at a time: the steward passes them on, each in its turn
	foreign chan *task // of kinds that this engine does not know
}

// empty tells whether nothing waits for a slot.
func (in inputs) empty() bool { return in.waiting() == 0 }

// waiting is how many tasks wait for a slot.
func (in inputs) waiting() int { return len(in.ready) }

// newInputs makes them with room for more than is ever claimed, so that neither
// the claim stage nor the steward waits on its own output.
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

// close ends what the claim stage sends. The steward closes ready, to which it
// sends too.
func (in inputs) close() {
	close(in.foreign)
	close(in.alone)
}
