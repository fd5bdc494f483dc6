package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

func TestInstantsAreReadAsPeopleWriteThem(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 28, 22, 30, 0, 0, zone) // the night before clocks go forward
	for text, want := range map[string]string{
		"2026-04-01T09:00:00Z":      "2026-04-01T11:00:00+02:00",
		"2026-04-01T09:00:00-05:00": "2026-04-01T16:00:00+02:00",
		"2026-04-01T09:00:00.5Z":    "2026-04-01T11:00:00.5+02:00",
		"2026-04-01 09:00":          "2026-04-01T09:00:00+02:00",
		"2026-04-01 09:00:30":       "2026-04-01T09:00:30+02:00",
		"2026-04-01T09:00":          "2026-04-01T09:00:00+02:00",
		"2026-04-01":                "2026-04-01T00:00:00+02:00",
		"23:15":                     "2026-03-28T23:15:00+01:00",
		"22:30":                     "2026-03-29T22:30:00+02:00", // now is over
		"09:00:05":                  "2026-03-29T09:00:05+02:00",
		"02:30":                     "2026-03-29T03:30:00+02:00", // an hour that does not exist
	} {
		got, err := parseInstant(text, now)
		if err != nil || got.In(zone).Format(time.RFC3339Nano) != want {
			t.Errorf("%s: got %v, %v, want %s", text, got.In(zone).Format(time.RFC3339Nano), err, want)
		}
	}
	for _, text := range []string{"", "tomorrow", "5", "25:00", "2026-02-30", "09:00 tomorrow", "1h"} {
		if got, err := parseInstant(text, now); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestDatabasesAreToldApartByTheirNames(t *testing.T) {
	for text, postgres := range map[string]bool{
		"stint.db":                false,
		"/var/lib/a=b.db":         false,
		`C:\jobs.db`:              false,
		"postgres.db":             false,
		":memory:":                false,
		"postgres://u@h/db":       true,
		"postgresql:///db?host=x": true,
		"host=h dbname=d":         true,
		" dbname = d":             true,
	} {
		if got := (databaseFlags{url: text}).isPostgres(); got != postgres {
			t.Errorf("%q: PostgreSQL %v", text, got)
		}
	}
	for text, want := range map[string]string{
		"postgres://h/d":                 "postgres://h/d?connect_timeout=10&pool_max_conns=8",
		"postgres://h/d?sslmode=disable": "postgres://h/d?sslmode=disable&connect_timeout=10&pool_max_conns=8",
		"host=h":                         "host=h connect_timeout=10 pool_max_conns=8",
		"host=h connect_timeout=3":       "host=h connect_timeout=3 pool_max_conns=8",
		"postgres://h/?pool_max_conns=2&connect_timeout=": "postgres://h/?pool_max_conns=2&connect_timeout=",
	} {
		if got := (databaseFlags{url: text}).withDefaults(); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

func TestSlotsAreANumberOrOneForEachQueue(t *testing.T) {
	for text, want := range map[string]slotsValue{
		"50":                {all: 50},
		"mail=4,default=20": {each: map[string]int{"mail": 4, "default": 20}},
		"*=3, mail = 1":     {each: map[string]int{"*": 3, "mail": 1}},
		"shop=a=2":          {each: map[string]int{"shop=a": 2}},
		"auto":              {most: engine.DefaultMaxSlots()},
		" auto:8..200":      {all: 8, most: 200},
		"auto:3..3":         {all: 3, most: 3},
		"auto:":             {},
		"auto:8":            {},
		"auto:8..":          {},
		"auto:0..5":         {},
		"auto:9..8":         {},
		"auto:a..8":         {},
		"automatic":         {},
		"mail=auto":         {},
		"auto,mail=4":       {},
		"0":                 {},
		"many":              {},
		"-1":                {},
		"mail=4,":           {},
		"mail=x":            {},
		"mail=1,mail=1":     {},
		"a\nb=1":            {},
	} {
		var got slotsValue
		err := got.Set(text)
		if wrong := reflect.DeepEqual(want, slotsValue{}); wrong != (err != nil) || !wrong && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a=1,b=2", "7", "auto", "auto:8..200"} {
		var v slotsValue
		if err := v.Set(text); err != nil || v.String() != text {
			t.Errorf("%s is shown as %s, %v", text, v.String(), err)
		}
	}
}

func TestPollsAreATimeOrARange(t *testing.T) {
	for text, want := range map[string]pollRange{
		"2s":         {every: 2 * time.Second},
		"20ms..1m":   {from: 20 * time.Millisecond, to: time.Minute},
		"50ms..50ms": {from: 50 * time.Millisecond, to: 50 * time.Millisecond},
		"5":          {},
		"..1s":       {},
		"2s..1s":     {},
		"1us":        {},
		"1s..2s..3s": {},
	} {
		if got, err := polls.parse(text); (err != nil) != (want == pollRange{}) || err == nil && (got != want || polls.format(got) != text) {
			t.Errorf("%q: got %+v, shown as %s, %v", text, got, polls.format(got), err)
		}
	}
}

func TestFiguresAreShort(t *testing.T) {
	for want, got := range map[string]string{
		"1,234,567":       words.Count(1234567),
		"-1,000":          words.Count(-1000),
		"999":             words.Count(999),
		"1 job":           words.Counted(1, "job"),
		"0 jobs":          words.Counted(0, "job"),
		"1.53ms":          words.Took(1_534_567),
		"153ms":           words.Took(153_456_789),
		"59s":             words.Rough(59*time.Second + time.Millisecond),
		"2m5s":            words.Rough(125 * time.Second),
		"3h4m":            words.Rough(3*time.Hour + 4*time.Minute + 5*time.Second),
		"3d4h":            words.Rough(76*time.Hour + time.Minute),
		"now":             words.Ago(time.Unix(0, 1), time.Unix(0, 2)),
		"in 5m":           words.Ago(time.Unix(300, 0), time.Unix(0, 0)),
		"5m ago":          words.Ago(time.Unix(0, 0), time.Unix(300, 0)),
		`a\x1b[0m` + "\n": words.Visible("a\x1b[0m\n"),
		"'it'\\''s'":      shellQuote("it's"),
		"plain.db":        shellQuote("plain.db"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestErrorsBecomeExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
	}{
		{nil, exitOK},
		{errors.New("x"), exitFailed},
		{errReported, exitFailed},
		{fmt.Errorf("x: %w", stint.ErrNotFound), exitFailed},
		{fmt.Errorf("x: %w", &stint.InvalidError{Field: "args", Problem: "bad"}), exitUsage},
		{withHint(usagef("x"), "y"), exitUsage},
		{fmt.Errorf("x: %w", engine.ErrStillRunning), exitStillRunning},
		{fmt.Errorf("x: %w", &engine.MemoryError{}), exitMemory},
	} {
		if got := exitCode(tt.err); got != tt.code {
			t.Errorf("%v: exit code %d, want %d", tt.err, got, tt.code)
		}
	}
}

func TestErrorsAreOneLineAndAHint(t *testing.T) {
	var out bytes.Buffer
	a := &app{err: &out}
	a.report(withHint(fmt.Errorf("open: %w\n  second\r\n\x1b[31m", store.ErrSchema), "do that"))
	a.report(errReported)
	want := "stint: open: the schema does not fit second \\x1b[31m\nhint: do that\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	root := newApp().rootCommand()
	for _, group := range append(root.Commands(), root) {
		for _, cmd := range append(group.Commands(), group) {
			if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
				t.Errorf("%s: %q is no short help", cmd.CommandPath(), cmd.Short)
			}
			for line := range strings.SplitSeq(cmd.Long+"\n"+cmd.Example, "\n") {
				if len([]rune(line)) > 90 {
					t.Errorf("%s: too long for a terminal: %s", cmd.CommandPath(), line)
				}
			}
		}
	}
	if _, err := os.Stat("stint.db"); err == nil {
		t.Error("making the commands created a database")
	}
}

func TestSizesHaveAUnit(t *testing.T) {
	for text, want := range map[string]struct {
		bytes int64
		shown string
	}{
		"512MiB": {512 << 20, "512MiB"}, "1GB": {1e9, "1GB"}, "1.5 gib": {3 << 29, "1536MiB"}, "64kib": {64 << 10, "64KiB"}, "2TB": {2e12, "2TB"}, "1000MiB": {1000 << 20, "1000MiB"},
		"1024MiB": {1 << 30, "1GiB"},
	} {
		if n, err := sizes.parse(text); err != nil || n != want.bytes || sizes.format(n) != want.shown {
			t.Errorf("%s: got %d, %s, %v", text, n, sizes.format(n), err)
		}
	}
	for text, want := range map[string]string{
		"512": "write for example 512MiB", "": "not a size", "MiB": "not a number of MiB", "-1MiB": "too little", "0MiB": "too little", "1e30TB": "too much",
		"5 apples": "not a size", "nanMiB": "not a number",
	} {
		if _, err := sizes.parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestAnEngineWaitsForItsDatabaseForAWhileOrForEver(t *testing.T) {
	now := time.Now()
	for text, want := range map[string]time.Duration{"30s": 30 * time.Second, "0s": 0, "forever": 100 * 365 * 24 * time.Hour} {
		if w, err := waits.parse(text); err != nil || now.Add(w).Before(now.Add(want)) || waits.format(w) != text {
			t.Errorf("%s: got %v, %s, %v", text, now.Add(w), waits.format(w), err)
		}
	}
	if _, err := waits.parse("30"); err == nil {
		t.Error("a number without a unit was taken")
	}
}

func TestStatementsAreLoggedAllOrTheSlowOnes(t *testing.T) {
	for text, want := range map[string]sqlLog{"all": {true, 0}, "50ms": {true, 50 * time.Millisecond}} {
		if l, err := sqlLogs.parse(text); err != nil || l != want || sqlLogs.format(l) != text {
			t.Errorf("%s: got %+v, %s, %v", text, l, sqlLogs.format(l), err)
		}
	}
	if _, err := sqlLogs.parse("50"); err == nil {
		t.Error("a number without a unit was taken")
	}
}

func TestAnAddressHasAPort(t *testing.T) {
	for _, text := range []string{":9070", "127.0.0.1:9070", "[::1]:9070", "localhost:0"} {
		if _, err := addresses("9070").parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "9070", "localhost", "localhost:http", "localhost:70000", "localhost:-1", "::1:9070"} {
		if _, err := addresses("9070").parse(text); err == nil {
			t.Errorf("%q was taken for an address", text)
		}
	}
}

func TestWhatIsWrappedHasNoBlanksAtTheEndsOfLines(t *testing.T) {
	const text = "one two three four five six seven"
	if got := wrapped(text, 0); got != text {
		t.Errorf("without a width it is %q", got)
	}
	got := wrapped(text, 10)
	for line := range strings.SplitSeq(got, "\n") {
		if len(line) > 10 || strings.TrimSpace(line) != line {
			t.Errorf("there is the line %q", line)
		}
	}
	if strings.Join(strings.Fields(got), " ") != text {
		t.Errorf("it became %q", got)
	}
}

func TestMetricsTellTimesAsOtherTablesDo(t *testing.T) {
	var out strings.Builder
	a := &app{out: &out}
	a.listMetrics([]report.Metrics{{Instance: "one", Workers: report.WorkerMetrics{Working: 183_448 * time.Millisecond}}}, nil, time.Now())
	if !strings.Contains(out.String(), " "+words.Took(183_448*time.Millisecond)+" ") {
		t.Errorf("it shows\n%s", out.String())
	}
}

func TestTheHelpNamesEachRetryPolicy(t *testing.T) {
	var f jobFlags
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.add(flags)
	usage := flags.Lookup("retry").Usage
	for _, p := range policies {
		name, _, _ := strings.Cut(p.text, ",")
		name, _, _ = strings.Cut(name, ":")
		if !strings.Contains(strings.ReplaceAll(usage, "otherwise exponential", ""), name) {
			t.Errorf("%s is not in %q", name, usage)
		}
	}
}
