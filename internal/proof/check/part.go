package check

import "fmt"

// part is the history of one process while it is read.
type part struct {
	process  Process
	enqueues []Enqueue
	runs     []Run
	batches  int32
	torn     bool
}

// add applies the next record.
func (p *part) add(rec *record) error {
	switch {
	case rec.R == "process" && p.process.Name == "" && rec.Name != "":
		p.process = started(rec)
		return nil
	case rec.R == "process" || p.process.Name == "":
		return fmt.Errorf("a log begins with its process, once; this is %q", rec.R)
	case p.process.Stopped != 0:
		return fmt.Errorf("%q after the log was closed", rec.R)
	}
	switch rec.R {
	case "intend":
		return p.intend(rec)
	case "committed":
		return p.settle(rec, Committed, len(rec.Jobs))
	case "rolledback":
		return p.settle(rec, RolledBack, rec.Of)
	case "unknown":
		return p.settle(rec, Unknown, rec.Of)
	case "start":
		return p.start(rec)
	case "end":
		return p.end(rec)
	case "close":
		p.process.Stopped = rec.At
		return nil
	}
	return fmt.Errorf("unknown record %q", rec.R)
}

func (p *part) intend(rec *record) error {
	if rec.N != len(p.enqueues) {
		return fmt.Errorf("key %d where key %d was expected", rec.N, len(p.enqueues))
	}
	for _, key := range rec.Keys {
		p.enqueues = append(p.enqueues, Enqueue{Key: key, At: rec.At, Batch: p.batches})
	}
	p.batches++
	return nil
}

// settle says what became of n keys. An unknown fate may become known later,
// a known one stands.
func (p *part) settle(rec *record, fate Fate, n int) error {
	if rec.N < 0 || n < 0 || rec.N > len(p.enqueues) || n > len(p.enqueues)-rec.N {
		return fmt.Errorf("%s: keys %d and %d more, of %d", rec.R, rec.N, n, len(p.enqueues))
	}
	for i := range p.enqueues[rec.N : rec.N+n] {
		e := &p.enqueues[rec.N+i]
		if e.Fate != Unknown {
			return fmt.Errorf("key %q is %s and now %s", e.Key, e.Fate, fate)
		}
		e.Fate = fate
		if fate == Committed {
			e.Job = rec.Jobs[i]
		}
	}
	return nil
}

func (p *part) start(rec *record) error {
	if rec.N != len(p.runs) {
		return fmt.Errorf("run %d where run %d was expected", rec.N, len(p.runs))
	}
	p.runs = append(p.runs, Run{
		Job: rec.Job, Pos: rec.Pos, Engine: rec.Engine,
		Attempt: rec.Attempt, Slot: rec.Slot, Start: rec.At,
	})
	return nil
}

func (p *part) end(rec *record) error {
	if rec.N < 0 || rec.N >= len(p.runs) {
		return fmt.Errorf("run %d ends, of %d", rec.N, len(p.runs))
	}
	r := &p.runs[rec.N]
	if r.How != Open {
		return fmt.Errorf("run %d ends twice", rec.N)
	}
	// One of the constants, so that no run holds on to a string of its own.
	for _, how := range [...]How{OK, Error, Panic, Snooze, Cancelled, Recorded} {
		if string(how) == rec.How {
			r.How = how
		}
	}
	if r.How == Open {
		return fmt.Errorf("run %d ends in an unknown way, %q", rec.N, rec.How)
	}
	r.End, r.Cause = rec.At, rec.Cause
	return nil
}
