package stint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/seal"
	"github.com/stint-go/stint/store"
)

// What parsers of this package read is written so that it is read again as the
// same, and what they refuse names what is wrong.

func FuzzMissed(f *testing.F) {
	for _, text := range []string{"one", "none", "all", "all:1", "all:1000", "all:1001", "all:0", "all:-1", "all:+7", "all:007", "", "ALL:1", "all:99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var m stint.Missed
		err := m.UnmarshalText([]byte(text))
		if err != nil {
			refused(t, text, err, "missed")
			return
		}
		var again stint.Missed
		if err := again.UnmarshalText([]byte(m.String())); again != m || err != nil {
			t.Errorf("%q is %s, which is read as %v: %v", text, m, again, err)
		}
		if m.Check() != nil || m.Most() < 1 || m.Most() > 1000 {
			t.Errorf("%q lets %d run: %v", text, m.Most(), m.Check())
		}
	})
}

func FuzzRetention(f *testing.F) {
	for _, s := range [][2]string{
		{"*", "5d"}, {"completed", "forever"}, {"mail:failed", "1h30m"}, {"a:b:*", "1s"}, {":*", "1h"}, {"*:*", "1h"}, {"mail:", "1h"}, {"running", "1h"},
		{"*", "999ms"}, {"*", "-1h"}, {"*", "292y"}, {"*", "106751d23h47m16s854ms775us807ns"}, {"\x00:*", "1h"}, {"completed:completed", "1w"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		var r, again store.Retention
		if r.Set(name, text) != nil {
			return
		}
		if err := r.Check(); err != nil {
			t.Errorf("%q = %q is taken, and refused later: %v", name, text, err)
		}
		for _, line := range r.Lines() {
			if err := again.Set(line.Name, line.Text); err != nil || line.Name != name {
				t.Errorf("%q = %q is written as %q = %q: %v", name, text, line.Name, line.Text, err)
			}
		}
		if !reflect.DeepEqual(r, again) {
			t.Errorf("%q = %q is %+v, and read again %+v", name, text, r, again)
		}
	})
}

func FuzzKinds(f *testing.F) {
	for _, text := range []string{
		`{"name":"mail","queue":"post","priority":-3,"retry":"fixed:2:1s","timeout":"1m30s","start_within":"2w","max_losses":0,"tags":["a"],"unique":"until-ended"}`,
		`{"name":"mail","retry":"none"}`, `{"timeout":"-1s"}`, `{"timeout":60}`, `{"retry":{"policy":"none"}}`, `{}`, `null`, `[]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var kind, again stint.KindInfo
		if json.Unmarshal(text, &kind) != nil {
			return
		}
		written, err := json.Marshal(kind)
		if err == nil {
			err = json.Unmarshal(written, &again)
		}
		if err != nil || again.Timeout != kind.Timeout || again.StartWithin != kind.StartWithin || again.Retry.String() != kind.Retry.String() || again.Name != strings.ToValidUTF8(kind.Name, "\ufffd") {
			t.Errorf("%s is %+v, written as %s, and read again as %+v: %v", text, kind, written, again, err)
		}
	})
}

func FuzzOutcomes(f *testing.F) {
	for _, text := range []string{"", "completed", "failed", "snoozed", "returned", "lost", "cancelled", "expired", "skipped", "unknown", "Lost"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var o stint.Outcome
		if err := o.UnmarshalText([]byte(text)); err != nil {
			refused(t, text, err, "outcome")
		} else if o.String() != text {
			t.Errorf("%q is read as %s", text, o)
		}
	})
}

// What a store keeps of a schedule may be written by another version or by hand.
func FuzzStoredSchedules(f *testing.F) {
	for _, job := range []string{
		`{"kind":"k","args":{},"queue":"q"}`, `{"kind":"k","args":{"a":1e400},"queue":"q"}`, `{}`, `null`, `[]`, `{"kind":"k","timeout":"5s","start_within":"1h","tags":["b","a"]}`,
		`{"kind":"k","retry":"fixed:2:10s","max_losses":0}`, `{"kind":"k","retry":{"policy":"none"}}`, `{"kind":"k","timeout":"-1s"}`, `{"kind":"k","args":null,"metadata":{"x":"\u0000"}}`,
		`{"kind":"k","priority":101}`, `{"kind":"\ud800"}`, `{"kind":"k","max_losses":-1}`,
	} {
		f.Add("0 9 * * 1", "one", job)
	}
	f.Add("every 5m", "all:3", `{"kind":"k"}`)
	f.Add("@", "some", `{"kind":"k"}`)
	f.Fuzz(func(t *testing.T, recurrence, missed, job string) {
		var s store.ScheduleInfo
		texts := store.ScheduleTexts{Recurrence: recurrence, Missed: missed, Job: json.RawMessage(job)}
		s.Read(texts)
		if !reflect.DeepEqual(s.Stored, texts) {
			t.Fatalf("what was stored became %+v", s.Stored)
		}
		_, unread := cron.Parse(recurrence)
		if unread != nil && s.Problem == nil {
			t.Fatalf("the recurrence %q is no problem", recurrence)
		}
		if s.Problem != nil {
			return
		}
		written, err := store.TextsOf(s.Schedule)
		if err != nil {
			t.Fatalf("%q is read and cannot be written: %v", job, err)
		}
		var again store.ScheduleInfo
		if again.Read(written); again.Problem != nil {
			t.Fatalf("%q is written as %s, which cannot be read: %v", job, written.Job, again.Problem)
		}
		if twice, err := store.TextsOf(again.Schedule); err != nil || !bytes.Equal(twice.Job, written.Job) || twice.Recurrence != written.Recurrence || twice.Missed != written.Missed {
			t.Fatalf("%q is written as %s, and then as %s: %v", job, written.Job, twice.Job, err)
		}
	})
}

// A job that is read from JSON is written so that it is read again as the same, and one
// that is refused stays as it was.
func FuzzNewJob(f *testing.F) {
	for _, raw := range []string{
		`{"kind":"mail","args":{"to":"ann"},"queue":"fast","priority":-3,"delay":"90s","tags":["a","b"],"retry":"fixed:2:1s","max_losses":2}`,
		`{"kind":"mail","run_at":"2026-01-02T03:04:05.123456Z","start_by":"2026-01-03T00:00:00+01:00","timeout":"1m","metadata":{"x":1}}`,
		`{"retry":{"fixed":{"retries":2,"wait":"1s"}},"start_within":"1h","urn":"urn:x:1","source":"me","correlation":"c"}`,
		`{"start_by":null,"start_within":"","args":"","tags":null}`, `{"prioritty":1}`, `{"priority":"1"}`, `{"delay":1}`, `{"retry":"never"}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		job := stint.NewJob{Kind: "before", Tags: []string{"one"}}
		if err := job.UnmarshalJSON(raw); err != nil {
			if invalid, ok := errors.AsType[*stint.InvalidError](err); !ok || invalid.Field == "" {
				t.Errorf("%q is refused by %v, which names no option", raw, err)
			}
			if !reflect.DeepEqual(job, stint.NewJob{Kind: "before", Tags: []string{"one"}}) {
				t.Errorf("%q is refused, and the job is %+v", raw, job)
			}
			return
		}
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", raw, err)
		}
		var again stint.NewJob
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%q is written as %s, which cannot be read: %v", raw, text, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(twice, text) {
			t.Errorf("%q is written as %s, and then as %s: %v", raw, text, twice, err)
		}
	})
}

// Arguments count as the same when they are the same value, and as others
// otherwise.
func FuzzFingerprints(f *testing.F) {
	for _, s := range [][2]string{
		{`{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`}, {`"\u0041"`, `"A"`}, {`1`, `1.0`}, {`[1,2]`, `[2,1]`}, {`9007199254740993`, `9007199254740992`}, {`{"a":null}`, `{}`},
		{`"<"`, `"\u003c"`}, {`"\u2028"`, "\"\u2028\""}, {`{"a":1,"a":2}`, `{"a":2}`}, {`""`, `null`}, {`{}`, ``},
		{`{"$sealed":{"c":"a","k":"1","m":"x"}}`, `{"$sealed":{"c":"b","k":"2","m":"x"}}`}, {`{"$sealed":{"c":"a","k":"1"}}`, `{"$sealed":{"c":"b","k":"1"}}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	value := func(raw []byte) (v any, ok bool) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return nil, false
		}
		_, err := d.Token()
		return v, err == io.EOF
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, isX := value(a)
		y, isY := value(b)
		if !isX || !isY {
			return // which is refused before
		}
		if seal.Is(a) {
			x = seal.Comparable(x)
		}
		if seal.Is(b) {
			y = seal.Comparable(y)
		}
		same := stint.NewJob{Kind: "k", Args: a}.Fingerprint() == stint.NewJob{Kind: "k", Args: b}.Fingerprint()
		if same != reflect.DeepEqual(x, y) {
			t.Errorf("%q and %q count as the same: %v", a, b, same)
		}
		if (stint.NewJob{Kind: "l", Args: a}).Fingerprint() == (stint.NewJob{Kind: "k", Args: a}).Fingerprint() {
			t.Errorf("%q counts as the same for every kind", a)
		}
	})
}

// A field of analytics is checked by its name alone, before any store sees it.
func FuzzFields(f *testing.F) {
	for _, text := range []string{"queue", "args.customer", "metadata.a.b", "args.", "args", "x.y", ".", "args..", "args.\x00", "metadata.ü", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, keys := report.Field(text).Path()
		if in != "" && in+"."+strings.Join(keys, ".") != text {
			t.Errorf("%q is in %s at %q", text, in, keys)
		}
		if err := report.Field(text).Check(); err != nil {
			refused(t, text, err, "field")
		} else if in != "" && (len(keys) == 0 || keys[0] == "") {
			t.Errorf("%q is taken and leads nowhere", text)
		}
	})
}

// refused makes sure that an error names the field and is bounded.
func refused(t *testing.T, text string, err error, field string) {
	t.Helper()
	var invalid *stint.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != field {
		t.Errorf("%q is refused by %v, which does not name %s", text, err, field)
	}
	if len(err.Error()) > 4*len(text)+1000 {
		t.Errorf("%q is refused by %d bytes", text, len(err.Error()))
	}
}

func FuzzUniqueness(f *testing.F) {
	for _, text := range []string{
		"until-ended", "until-started,by=/a,replace", "until-started:1h", "within:1h30m", "slot:1d,by=/a|/b/0,across=x,replace-keep-time", "until-ended,by=/~1~0,cancel-old", "until-ended,by=/,keep", "until-started,debounce:1m,by=/a", "until-ended,by=none", "until-ended,debounce:",
		"", "none", "within", "within:0s", "slot:9999w", "until-ended,by=", "until-ended,by=/~2", "until-ended,x=1", "within:1h,cancel-old", "until-ended,across= x",
	} {
		f.Add(text, `{"a":1,"b":[null],"":{},"/~":2}`)
	}
	f.Fuzz(func(t *testing.T, text, args string) {
		u, err := stint.ParseUniqueness(text)
		if err != nil {
			var invalid *stint.InvalidError
			if !errors.As(err, &invalid) {
				t.Errorf("%q is refused by %v", text, err)
			}
			return
		}
		if again, err := stint.ParseUniqueness(u.String()); err != nil || !reflect.DeepEqual(again, u) {
			t.Errorf("%q is %q, which is read as %+v, want %+v: %v", text, u, again, u, err)
		}
		if !json.Valid([]byte(args)) {
			return
		}
		selected, err := u.Selected(json.RawMessage(args))
		if err != nil {
			return
		}
		var found map[string]json.RawMessage
		if len(u.By) > 0 && (json.Unmarshal(selected, &found) != nil || len(found) != len(u.By)) {
			t.Errorf("%q selects %s of %s", text, selected, args)
		}
		if until := u.Until(1e15); (u.Scope == stint.Within || u.Scope == stint.Slot) && until <= 1e15 {
			t.Errorf("%q ends at %d", text, until)
		}
	})
}

func FuzzLimitRules(f *testing.F) {
	for _, text := range []string{
		"any", "0", "10", "100/1m", "10,100/1m", "10,100/1m,burst=5", "0,1/31d", "1000000,100000/1s", "", ",", "10,", "-1", "+3", "007", "10/5", "1/1ms,burst=1",
		"burst=5", "10,burst=5", "100/1m,burst=101", "5,6", "100/1m,100/1h", "1/0s", "0/1s", "9999999999999999999", "1/32d", "1000000/1s", "any,1", "1/1m,burst=0",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := stint.ParseLimitRule(text)
		if err != nil {
			var invalid *stint.InvalidError
			if !errors.As(err, &invalid) {
				t.Errorf("%q is refused by %v", text, err)
			}
			return
		}
		again, err := stint.ParseLimitRule(r.String())
		if again.Burst, r.Burst = max(1, again.Burst), max(1, r.Burst); err != nil || again != r {
			t.Errorf("%q is %q, which is read as %+v, want %+v: %v", text, r, again, r, err)
		}
	})
}
