package sim

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// In make test a week of sixty schedules, and by hand as many days as
// STINT_SIM_DAYS says, of a thousand beside one of a minute.
func TestAYearOfSchedulesIsWhatTheCalendarSays(t *testing.T) {
	days, n := 7, 60
	if text := os.Getenv("STINT_SIM_DAYS"); text != "" {
		var err error
		if days, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		n = 1000
	}
	seed := setting(t, "STINT_SIM_SEED", uint64(time.Now().UnixNano())%1000)
	began, all := time.Now(), plans(roll(seed, "plans", 0), n)
	if n == 1000 {
		all = append(all, minutely)
	}
	wrong, summary := runYear(t, seed, all, time.Duration(days)*24*time.Hour, max(20, days), nil)
	for _, what := range wrong {
		t.Error(what)
	}
	t.Logf("STINT_SIM_SEED=%d: %d days took %v; %s", seed, days, time.Since(began).Round(time.Millisecond), summary)
}
