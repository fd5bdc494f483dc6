package cron_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint/cron"
)

// everyMonth is the same day of the next month, until the year 2030.
func everyMonth(after time.Time, zone *time.Location) (time.Time, bool) {
	next := after.In(zone).AddDate(0, 1, 0)
	return next, next.Year() < 2030
}

func registry(t *testing.T, name string, fn cron.Func) *cron.Registry {
	t.Helper()
	r := new(cron.Registry)
	if err := r.Register(name, fn); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAFunctionIsAskedByItsName(t *testing.T) {
	r := registry(t, "monthly", everyMonth)
	after := instant(t, "2029-10-15T00:00:00Z")
	got, err := r.Upcoming(cron.Function("monthly"), after, mustZone(t, "Asia/Tokyo"), 10)
	var text []string
	for _, next := range got {
		text = append(text, next.Format(time.RFC3339))
	}
	if want := []string{"2029-11-15T09:00:00+09:00", "2029-12-15T09:00:00+09:00"}; err != nil || !slices.Equal(text, want) {
		t.Errorf("it happens at %v, %v; want %v", text, err, want)
	}
	next, ok, err := r.Resume(cron.Function("monthly"), after, after.AddDate(0, 1, 1), nil)
	if want := instant(t, "2029-12-16T00:00:00Z"); !ok || err != nil || !next.Equal(want) {
		t.Errorf("it goes on at %s, %v, %v; want %s", next, ok, err, want)
	}
	if name, ok := cron.Function("monthly").Func(); name != "monthly" || !ok {
		t.Errorf("its name is %q, %v", name, ok)
	}
	if d, ok := cron.Function("monthly").Interval(); d != 0 || ok {
		t.Errorf("it is an interval of %v, %v", d, ok)
	}
	if d, ok := cron.Every(time.Hour).Interval(); d != time.Hour || !ok {
		t.Errorf("an hour is an interval of %v, %v", d, ok)
	}
	if name, ok := cron.Every(time.Hour).Func(); name != "" || ok {
		t.Errorf("an interval is the function %q", name)
	}
	if names := r.Names(); !slices.Equal(names, []string{"monthly"}) {
		t.Errorf("the functions are %v", names)
	}
}

func TestARegistryAnswersForAllOthersToo(t *testing.T) {
	var r *cron.Registry
	after := instant(t, "2026-07-01T12:00:00Z")
	if next, ok, err := r.Next(cron.Every(time.Hour), after, nil); !ok || err != nil || !next.Equal(after.Add(time.Hour)) {
		t.Errorf("an interval: %s, %v, %v", next, ok, err)
	}
	if next, ok, err := r.Resume(cron.Every(time.Hour), after.Add(-90*time.Minute), after, nil); !ok || err != nil || !next.Equal(after.Add(time.Hour/2)) {
		t.Errorf("an interval goes on: %s, %v, %v", next, ok, err)
	}
	if next, ok, err := r.Next(cron.Recurrence{}, after, nil); ok || err != nil {
		t.Errorf("the zero value: %s, %v, %v", next, ok, err)
	}
	for _, bad := range []cron.Recurrence{cron.Every(0), cron.Function("")} {
		if _, _, err := r.Next(bad, after, nil); !errors.Is(err, cron.ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
		if _, _, err := r.Resume(bad, after, after, nil); !errors.Is(err, cron.ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if names := r.Names(); len(names) > 0 {
		t.Errorf("no registry has the functions %v", names)
	}
}

func TestAnUnknownFunctionIsAnError(t *testing.T) {
	for _, r := range []*cron.Registry{nil, {}} {
		_, ok, err := r.Next(cron.Function("moon"), time.Now(), nil)
		if unknown, is := errors.AsType[*cron.UnknownFuncError](err); ok || !is || unknown.Name != "moon" || !errors.Is(err, cron.ErrUnknownFunc) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestAFunctionThatMisbehavesIsAnErrorAndNoTime(t *testing.T) {
	after := instant(t, "2026-07-01T12:00:00Z")
	for name, tt := range map[string]struct {
		fn   cron.Func
		want string
	}{
		"stands": {
			func(after time.Time, _ *time.Location) (time.Time, bool) { return after, true },
			`recurrence function "stands" gave 2026-07-01T12:00:00Z, which is not after 2026-07-01T12:00:00Z`,
		},
		"nil": {
			func(time.Time, *time.Location) (time.Time, bool) { panic("no moon") },
			`recurrence function "nil" panicked: no moon`,
		},
	} {
		next, ok, err := registry(t, name, tt.fn).Next(cron.Function(name), after, nil)
		if err == nil || err.Error() != tt.want || ok || !next.IsZero() {
			t.Errorf("%s: %s, %v, %v; want %s", name, next, ok, err, tt.want)
		}
	}
}

// Databases keep microseconds. A time that is a little later than what was kept
// of it would be found again and again.
func TestAFunctionsTimeIsRoundedUpToWhatIsKept(t *testing.T) {
	after := instant(t, "2026-07-01T12:00:00Z")
	r := registry(t, "soon", func(after time.Time, _ *time.Location) (time.Time, bool) { return after.Add(1), true })
	next, ok, err := r.Next(cron.Function("soon"), after, nil)
	if want := after.Add(time.Microsecond); !ok || err != nil || !next.Equal(want) {
		t.Errorf("it happens at %s, %v, %v; want %s", next, ok, err, want)
	}
}

func TestAFunctionIsRegisteredOnce(t *testing.T) {
	r := registry(t, "monthly", everyMonth)
	for name, fn := range map[string]cron.Func{"monthly": everyMonth, "": everyMonth, "none": nil} {
		if err := r.Register(name, fn); err == nil {
			t.Errorf("%q is registered", name)
		}
	}
}
