package guide

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/stinttest"
)

type Report struct {
	To string `json:"to"`
}

var SendReport = stint.NewKind[Report]("send_report")

var Poll = stint.NewKind[struct{}]("poll_inbox")

func schedules() *stint.Mux {
	mux := stint.NewMux()
	mux.Schedule(
		SendReport.Schedule("nightly", cron.MustParse("30 2 * * MON-FRI"), Report{"ops"}, stint.Zone("Europe/Berlin")),
		Poll.Schedule("inbox", cron.Every(10*time.Minute), struct{}{}, stint.Unique(), stint.MissedNone),
	)
	return mux
}

func TestSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins on Saturday, the first of January 2000
		reports, polls := 0, 0
		mux := schedules()
		stint.Handle(mux, SendReport, func(ctx context.Context, job *stint.Job, in Report) error {
			reports++
			return nil // job.Origin names the schedule and the occurrence
		})
		stint.Handle(mux, Poll, func(context.Context, *stint.Job, struct{}) error { polls++; return nil })
		w := stinttest.New(t, mux)
		w.Drain(stinttest.Within(3*24*time.Hour), stinttest.FailOnError())
		if reports != 1 || polls < 430 {
			t.Errorf("in three days there were %d reports and %d polls", reports, polls)
		}
	})
}

func TestSchedulesThatComeAndGo(t *testing.T) {
	store := openSQLite(t)
	client := stint.NewClient(store)
	ctx := t.Context()

	err := client.Schedule(ctx, "billing", // for each customer, while the program runs
		SendReport.Schedule("report:42", cron.MustParse("0 8 1 * *"), Report{"customer 42"}))

	must(t, err)
	all, err := store.Schedules(ctx)
	must(t, err)
	if len(all) != 1 || all[0].Name != "report:42" {
		t.Errorf("the schedules are %+v", all)
	}
}
