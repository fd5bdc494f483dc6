package pgtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestTheClockOfAServerIsSetWhileItRuns(t *testing.T) {
	server := Start(t, Options{Clock: true})
	conn := connect(t, server.URL("postgres"))
	defer conn.Close(t.Context())
	for _, ahead := range []time.Duration{0, 3 * time.Hour, -3 * time.Hour, 90 * time.Second, 0} {
		server.SetClock(ahead)
		if off := time.Until(clockOf(t, conn)) - ahead; off.Abs() > time.Minute {
			t.Errorf("set ahead by %v, the clock is %v beside that", ahead, off)
		}
	}
	server.SetClock(time.Hour)
	server.Restart(Immediate)
	again := connect(t, server.URL("postgres"))
	defer again.Close(t.Context())
	if off := time.Until(clockOf(t, again)) - time.Hour; off.Abs() > time.Minute {
		t.Errorf("after a restart the clock is %v beside what it was set to", off)
	}
}

func clockOf(t *testing.T, conn *pgx.Conn) (now time.Time) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now); err != nil {
		t.Fatal(err)
	}
	return now
}
