package cron_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/cron"
)

func TestTextsAreReadAndWritten(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"30 2 * * *", "30 2 * * *"},
		{"  30\t2 * *  mon-Fri\n", "30 2 * * MON-FRI"},
		{"0 0 ? * ?", "0 0 * * *"},
		{"0 0 ?/2 * 1", "0 0 */2 * 1"},
		{"0 0 l,lw,15w * *", "0 0 L,LW,15W * *"},
		{"0 0 * * 5l,tue#3", "0 0 * * 5L,TUE#3"},
		{"007 0 1 jan 7", "007 0 1 JAN 7"},
		{"@Hourly", "@hourly"},
		{"@midnight", "@daily"},
		{"@annually", "@yearly"},
		{"@every 90s", "every 1m30s"},
		{"every 1d12h", "every 1d12h"},
		{"Every 24h", "every 1d"},
		{"function:full moon", "function:full moon"},
		{" function:Mond ", "function:Mond"},
	} {
		r, err := cron.Parse(tt.text)
		if err != nil || r.String() != tt.want {
			t.Errorf("%q is read as %q, %v; want %q", tt.text, r, err, tt.want)
		}
		if again := cron.MustParse(r.String()); again != r {
			t.Errorf("%q is %q when it is read again", r, again)
		}
	}
}

func TestMistakesSayTheFieldAndWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"61 * * * *", "cron: minute 61 is not between 0 and 59"},
		{"* 24 * * *", "cron: hour 24 is not between 0 and 23"},
		{"* * 0 * *", "cron: day of month 0 is not between 1 and 31"},
		{"* * * 13 *", "cron: month 13 is not between 1 and 12"},
		{"* * * * 8", "cron: day of week 8 is not between 0 and 7"},
		{"99999999999999999999 * * * *", "cron: minute 99999999999999999999 is not between 0 and 59"},
		{"5-61 * * * *", "cron: minute 61 is not between 0 and 59"},
		{"x * * * *", `cron: minute "X" is not a number`},
		{"+1 * * * *", `cron: minute "+1" is not a number`},
		{"1--2 * * * *", `cron: minute "-2" is not a number`},
		{"1-2-3 * * * *", `cron: minute "2-3" is not a number`},
		{"-5 * * * *", `cron: minute "" is not a number`},
		{"* * * JANUARY *", `cron: month "JANUARY" is not a number or a name such as FEB`},
		{"* * * * MOND", `cron: day of week "MOND" is not a number or a name such as MON`},
		{"1,,2 * * * *", "cron: minute: a value is missing beside a comma"},
		{", * * * *", "cron: minute: a value is missing beside a comma"},
		{"*/0 * * * *", "cron: minute: the step 0 is not between 1 and 59"},
		{"*/100 * * * *", "cron: minute: the step 100 is not between 1 and 59"},
		{"* * * * */7", "cron: day of week: the step 7 is not between 1 and 6"},
		{"*/ * * * *", `cron: minute "" is not a number`},
		{"**/5 * * * *", `cron: minute "**" is not a number`},
		{"*-5 * * * *", `cron: minute "*" is not a number`},
		{"0 22-4 * * *", "cron: hour: the range 22-4 goes backwards; write it as two, 22-23,0-4"},
		{"0 0 * * FRI-MON", "cron: day of week: the range FRI-MON goes backwards; write it as two, FRI-6,0-MON"},
		{"L * * * *", `cron: minute "L" is not a number`},
		{"0 0 L-3 * *", `cron: day of month "L-3" is not known; there are L, the last day, and LW, the last from Monday to Friday`},
		{"0 0 W * *", `cron: day of month "" is not a number`},
		{"0 0 32W * *", "cron: day of month 32 is not between 1 and 31"},
		{"0 0 * * L", "cron: day of week: L needs a day: 5L or FRIL is the last Friday of the month"},
		{"0 0 * * 5#6", `cron: day of week 5#6: a month has from 1 to 5 of a weekday, not "6"`},
		{"0 0 * * 5#", `cron: day of week 5#: a month has from 1 to 5 of a weekday, not ""`},
		{"0 0 * * 5#3L", `cron: day of week "5#3L" is not known; write 5L or 5#3`},

		{"0 0 31 2 *", "cron: day of month 31 never comes in month 2 with day of week *"},
		{"0 0 31 APR,JUN *", "cron: day of month 31 never comes in month APR,JUN with day of week *"},
		{"0 0 15W * */6", "cron: day of month 15W never comes in month * with day of week */6"}, // Saturday, Sunday
		{"0 0 15W * */5", ""}, // Sunday, Friday
		{"0 0 30W 2 *", "cron: day of month 30W never comes in month 2 with day of week *"},
		{"0 0 31 2 MON", ""}, // on Mondays

		{"", `cron: the text is empty; write for example "30 2 * * *" or "every 90s"`},
		{" \t", `cron: the text is empty; write for example "30 2 * * *" or "every 90s"`},
		{"0 0 * *", `cron: "0 0 * *" has 4 of the five fields: minute, hour, day of month, month, day of week`},
		{"0 0 0 * * *", "cron: there are 6 fields and should be five: minute, hour, day of month, month, day of week; " +
			`there is none for seconds or years, but an interval may be of seconds, as in "every 10s"`},
		{"TZ=UTC 0 0 * * *", "cron: TZ=UTC: the time zone is no part of the text; set it beside the text"},
		{"CRON_TZ=Asia/Tokyo 0 0 * * *", "cron: CRON_TZ=Asia/Tokyo: the time zone is no part of the text; set it beside the text"},
		{"@reboot", "cron: there is no @reboot; there are @hourly, @daily, @weekly, @monthly, @yearly and @every 90s"},
		{"@daily 5", "cron: there is no @daily 5; there are @hourly, @daily, @weekly, @monthly, @yearly and @every 90s"},
		{"every", `cron: an interval is written with one duration, as in "every 90s"`},
		{"every 5 minutes", `cron: an interval is written with one duration, as in "every 90s"`},
		{"every 5", `cron: interval: "5" has no unit; write 5s or 5m`},
		{"@every 500ms", "cron: the interval 500ms is too short; the shortest is 1s"},
		{"every 200000000h", `cron: interval: "200000000h" is too long; the longest is about 292 years`},
		{"every 5300w", "cron: the interval 5300w is too long; the longest is 36500d"},
		{"every 1s1us", "cron: the interval 1s1us is not a whole number of milliseconds"},
		{"function:", "cron: the name of the function is empty; write for example function:full-moon"},
		{"function:a\x00b", `cron: the name of the function "a\x00b" has a control character`},
		{strings.Repeat("1", 1001), "cron: the text has 1001 bytes; the longest has 1000"},
	} {
		r, err := cron.Parse(tt.text)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%q: %v; want none", tt.text, err)
		case tt.want == "":
		case err == nil || err.Error() != tt.want:
			t.Errorf("%q: %v; want %s", tt.text, err, tt.want)
		case !errors.Is(err, cron.ErrInvalid):
			t.Errorf("%q: %v is no ErrInvalid", tt.text, err)
		case !r.IsZero():
			t.Errorf("%q: there is an error, and %q", tt.text, r)
		}
	}
}

func TestMistakesInCodeAreCarriedUntilTheyAreAskedFor(t *testing.T) {
	for _, r := range []cron.Recurrence{cron.Every(0), cron.Every(-time.Hour), cron.Function(""), cron.Function(" x")} {
		if err := r.Validate(); !errors.Is(err, cron.ErrInvalid) {
			t.Errorf("%v: Validate says %v", r, err)
		}
		if text, err := r.MarshalText(); err == nil {
			t.Errorf("%v is encoded as %s", r, text)
		}
		if next, ok := r.Next(time.Now(), nil); ok || r.IsZero() {
			t.Errorf("%v happens at %s", r, next)
		}
		if next, ok := r.Resume(time.Now(), time.Now(), nil); ok {
			t.Errorf("%v happens at %s", r, next)
		}
	}
	defer func() {
		if v := recover(); fmt.Sprint(v) != "cron: minute 61 is not between 0 and 59" {
			t.Errorf("MustParse panics with %v", v)
		}
	}()
	cron.MustParse("61 * * * *")
}

func TestRecurrencesWrittenAlikeAreEqual(t *testing.T) {
	for _, same := range [][2]cron.Recurrence{
		{cron.MustParse("0 0 * * mon"), cron.MustParse(" 0 0  ? * MON")},
		{cron.MustParse("@midnight"), cron.MustParse("@daily")},
		{cron.MustParse("@every 90s"), cron.Every(90 * time.Second)},
		{cron.MustParse("function:f"), cron.Function("f")},
		{cron.Every(0), cron.Every(0)},
	} {
		if same[0] != same[1] {
			t.Errorf("%q and %q differ", same[0], same[1])
		}
	}
	if cron.MustParse("0 0 * * MON") == cron.MustParse("0 0 * * TUE") || cron.Every(time.Second) == cron.Every(time.Minute) {
		t.Error("recurrences that differ are equal")
	}
}

func TestJSONHoldsARecurrenceAsText(t *testing.T) {
	type settings struct {
		Recurs cron.Recurrence `json:"recurs,omitzero"`
		Other  cron.Recurrence `json:"other"`
	}
	in := settings{Other: cron.MustParse("*/5 * * * MON")}
	b, err := json.Marshal(in)
	if want := `{"other":"*/5 * * * MON"}`; err != nil || string(b) != want {
		t.Errorf("written: %s, %v; want %s", b, err, want)
	}
	var out settings
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Errorf("read again: %v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"recurs":"61 * * * *"}`), &out); !errors.Is(err, cron.ErrInvalid) {
		t.Errorf("a mistake in JSON is %v", err)
	}
	if err := json.Unmarshal([]byte(`{"other":"", "recurs":null}`), &out); err != nil || !out.Other.IsZero() {
		t.Errorf("the empty text is %q, %v", out.Other, err)
	}
	if err := json.Unmarshal([]byte(`{"other":5}`), &out); err == nil {
		t.Error("a number is a recurrence")
	}
	if b, err := json.Marshal(cron.Every(0)); err == nil {
		t.Errorf("a mistake is written as %s", b)
	}
}

func TestZonesAreFoundByName(t *testing.T) {
	for name, want := range map[string]string{"": "UTC", "UTC": "UTC", "Europe/Berlin": "Europe/Berlin"} {
		for range 2 {
			if zone, err := cron.Zone(name); err != nil || zone.String() != want {
				t.Errorf("%q is %v, %v", name, zone, err)
			}
		}
	}
	for name, want := range map[string]string{
		"Local":         "cron: the time zone Local is another one on each machine; name one, such as Europe/Berlin",
		"Europe/Berlnn": `cron: the time zone "Europe/Berlnn" is not in this machine's database; write for example Europe/Berlin or UTC`,
		"../etc/passwd": `cron: the time zone "../etc/passwd" is not in this machine's database; write for example Europe/Berlin or UTC`,
	} {
		if zone, err := cron.Zone(name); err == nil || err.Error() != want || !errors.Is(err, cron.ErrInvalid) {
			t.Errorf("%q is %v, %v", name, zone, err)
		}
	}
}
