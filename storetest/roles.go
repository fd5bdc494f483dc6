package storetest

import "github.com/stint-go/stint"

// role is the store in a role that it may have or not. A test that asks for one
// that it has not is skipped, with what is missing.
func role[R any](t *T, missing string) R {
	t.Helper()
	r, ok := t.Store.(R)
	if !ok {
		t.Skip(missing)
	}
	return r
}

func (t *T) analyst() stint.Analyst {
	t.Helper()
	return role[stint.Analyst](t, "the store does not tell how the work goes")
}

func (t *T) changeKeeper() stint.ChangeKeeper {
	t.Helper()
	return role[stint.ChangeKeeper](t, "the store keeps no changes")
}

func (t *T) canceller() stint.Canceller {
	t.Helper()
	return role[stint.Canceller](t, "the store cancels nothing")
}

func (t *T) errorAnalyst() stint.ErrorAnalyst {
	t.Helper()
	return role[stint.ErrorAnalyst](t, "the store groups no errors")
}

func evicter(t *T) stint.Evicter {
	t.Helper()
	return role[stint.Evicter](t, "no session can keep an engine from being buried")
}

func (t *T) holder() stint.Holder {
	t.Helper()
	return role[stint.Holder](t, "beats alone tell who lives")
}

func immediate(t *T) stint.Immediate {
	t.Helper()
	return role[stint.Immediate](t, "the store enqueues no job that is claimed already")
}

func (t *T) leaser() stint.Leaser {
	t.Helper()
	return role[stint.Leaser](t, "the store gives no leases")
}

func (t *T) keeper() stint.MetricsKeeper {
	t.Helper()
	return role[stint.MetricsKeeper](t, "the store keeps no metrics")
}

func (t *T) operator() stint.Operator {
	t.Helper()
	return role[stint.Operator](t, "the store is no operator")
}

func (t *T) pauser() stint.Pauser {
	t.Helper()
	return role[stint.Pauser](t, "the store pauses nothing")
}

func (t *T) retainer() stint.Retainer {
	t.Helper()
	return role[stint.Retainer](t, "the store keeps everything")
}

func (t *T) scheduleKeeper() stint.ScheduleKeeper {
	t.Helper()
	return role[stint.ScheduleKeeper](t, "the store keeps no schedules")
}

func (t *T) scheduler() stint.Scheduler {
	t.Helper()
	return role[stint.Scheduler](t, "the store keeps no schedules")
}

func sleeper(t *T) stint.Sleeper {
	t.Helper()
	return role[stint.Sleeper](t, "nobody has to say that he sleeps")
}

func (t *T) statistician() stint.Statistician {
	t.Helper()
	return role[stint.Statistician](t, "the store keeps no statistics")
}

func (t *T) finisher() stint.TxFinisher {
	t.Helper()
	return role[stint.TxFinisher](t, "the store does not complete in a caller's transaction")
}
