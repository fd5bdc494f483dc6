package sim

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// In make test the week in which most clocks of the north jump, and by hand as
// many days as STINT_SIM_DAYS says, of a thousand schedules beside one of a minute.
func TestAYearOfSchedulesIsWhatTheCalendarSays(t *testing.T) {
	days, n, from := 8, 50, time.Date(2000, 3, 25, 20, 0, 0, 0, time.UTC)
	if text := os.Getenv("STINT_SIM_DAYS"); text != "" {
		var err error
		if days, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		n, from = 1000, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	seed := setting(t, "STINT_SIM_SEED", uint64(time.Now().UnixNano())%1000)
	began, all := time.Now(), plans(roll(seed, "plans", 0), n)
	if n == 1000 {
		all = append(all, minutely)
	}
	wrong, summary := runYear(t, seed, all, from, time.Duration(days)*24*time.Hour, max(20, days), nil)
	for _, what := range wrong {
		t.Error(what)
	}
	t.Logf("STINT_SIM_SEED=%d: %d days took %v; %s", seed, days, time.Since(began).Round(time.Millisecond), summary)
}
