package storetest

import (
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

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

func (t *T) analyst() report.LiveStats {
	t.Helper()
	return role[report.LiveStats](t, "the store does not tell how the work goes")
}

func (t *T) awaiter() store.Awaiter {
	t.Helper()
	return role[store.Awaiter](t, "the store lets nobody wait for jobs")
}

func (t *T) changeKeeper() store.ChangeKeeper {
	t.Helper()
	return role[store.ChangeKeeper](t, "the store keeps no changes")
}

func (t *T) canceller() store.Canceller {
	t.Helper()
	return role[store.Canceller](t, "the store cancels nothing")
}

func (t *T) errorAnalyst() report.ErrorAnalyst {
	t.Helper()
	return role[report.ErrorAnalyst](t, "the store groups no errors")
}

func evicter(t *T) store.SessionTerminator {
	t.Helper()
	return role[store.SessionTerminator](t, "no session can keep an engine from being buried")
}

func (t *T) holder() store.LivenessLocker {
	t.Helper()
	return role[store.LivenessLocker](t, "beats alone tell who lives")
}

func immediate(t *T) store.ClaimedEnqueuer {
	t.Helper()
	return role[store.ClaimedEnqueuer](t, "the store enqueues no job that is claimed already")
}

func (t *T) leaser() store.Leaser {
	t.Helper()
	return role[store.Leaser](t, "the store gives no leases")
}

func (t *T) keeper() report.MetricsKeeper {
	t.Helper()
	return role[report.MetricsKeeper](t, "the store keeps no metrics")
}

func (t *T) operator() store.Operator {
	t.Helper()
	return role[store.Operator](t, "the store is no operator")
}

func (t *T) pauser() store.Pauser {
	t.Helper()
	return role[store.Pauser](t, "the store pauses nothing")
}

func (t *T) retainer() store.Retainer {
	t.Helper()
	return role[store.Retainer](t, "the store keeps everything")
}

func (t *T) scheduleKeeper() store.ScheduleKeeper {
	t.Helper()
	return role[store.ScheduleKeeper](t, "the store keeps no schedules")
}

func (t *T) scheduler() store.Scheduler {
	t.Helper()
	return role[store.Scheduler](t, "the store keeps no schedules")
}

func sleeper(t *T) store.IdleNotifier {
	t.Helper()
	return role[store.IdleNotifier](t, "nobody has to say that he sleeps")
}

func (t *T) statistician() report.StatsStore {
	t.Helper()
	return role[report.StatsStore](t, "the store keeps no statistics")
}

func (t *T) finisher() store.TxFinisher {
	t.Helper()
	return role[store.TxFinisher](t, "the store does not complete in a caller's transaction")
}
