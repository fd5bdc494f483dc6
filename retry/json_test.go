package retry_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/retry"
)

func TestJSONIsCanonical(t *testing.T) {
	for _, tt := range []struct {
		p    retry.Policy
		want string
	}{
		{retry.None(), `{"policy":"none"}`},
		{retry.Fixed(0, 0), `{"policy":"fixed","retries":0,"wait":"0s"}`},
		{retry.Fixed(3, 90*time.Second), `{"policy":"fixed","retries":3,"wait":"1m30s"}`},
		{retry.Forever(30 * time.Second), `{"policy":"forever","wait":"30s"}`},
		{retry.Default(), `{"policy":"exponential","retries":10,"first":"1m"}`},
		{retry.Timetable(), `{"policy":"timetable","rows":[{"younger":"5m","wait":"1m"},{"younger":"1h","wait":"5m"},{"younger":"1d","wait":"1h"}]}`},
		{retry.Function("billing"), `{"policy":"function","name":"billing"}`},
		{
			retry.ByError(retry.On("timeout", retry.Forever(time.Minute).Jitter(0.5)), retry.Otherwise(retry.None())).Except("b", "a"),
			`{"policy":"by_error","cases":[{"class":"timeout","then":{"policy":"forever","wait":"1m","jitter":0.5}}],` +
				`"else":{"policy":"none"},"except":["a","b"]}`,
		},
		{
			retry.Default().Deadline(24 * time.Hour).MaxDelay(time.Hour).Jitter(0.1).Only("timeout"),
			`{"policy":"exponential","retries":10,"first":"1m","only":["timeout"],"jitter":0.1,"max":"1h","deadline":"1d"}`,
		},
	} {
		got, err := json.Marshal(tt.p)
		if err != nil || string(got) != tt.want {
			t.Errorf("encoded %s, %v\nwant    %s", got, err, tt.want)
		}
		var back retry.Policy
		if err := json.Unmarshal(got, &back); err != nil || back != tt.p {
			t.Errorf("%s came back as %v, %v", got, back, err)
		}
	}
}

func TestJSONByHandMayBeShort(t *testing.T) {
	var job struct{ Retry, None, Null, Absent retry.Policy }
	err := json.Unmarshal([]byte(`{
		"Retry": {"else": "default", "policy": "by_error", "cases": [ {"class": "a", "then": "fixed:2:1s"} ]},
		"None": "none", "Null": null}`), &job)
	if err != nil {
		t.Fatal(err)
	}
	if want := retry.ByError(retry.On("a", retry.Fixed(2, time.Second)), retry.Otherwise(retry.Default())); job.Retry != want {
		t.Errorf("got %v, want %v", job.Retry, want)
	}
	if job.None != retry.None() || job.Null != retry.Default() || job.Absent != retry.Default() {
		t.Errorf("got %+v", job)
	}
}

func TestJSONMistakesSayWhatAndWhere(t *testing.T) {
	nested := strings.Repeat(`{"policy":"by_error","cases":[{"class":"a","then":`, 1000) + `"none"` + strings.Repeat(`}]}`, 1000)
	for _, tt := range []struct{ data, want string }{
		{`{`, "malformed JSON"},
		{`{"policy":"none"} {}`, "malformed JSON"},
		{`3`, "want an object, got 3"},
		{`[]`, "want an object, got []"},
		{`{}`, "policy: is missing"},
		{`{"policy":""}`, "policy: is empty"},
		{`{"policy":null}`, "policy: want text, got null"},
		{`{"policy":7}`, "policy: want text, got 7"},
		{`{"policy":"linear","step":"1s"}`, `policy: is "linear"; there are none, default, fixed,`},
		{`{"Policy":"none"}`, "policy: is missing"},
		{`{"policy":"none","policy":"none"}`, `field "policy" is given twice`},
		{`{"policy":"none","wait":"1s"}`, `none has no field "wait"; it has policy, only, except, jitter, max, deadline`},
		{`{"policy":"fixed","retries":3,"wiat":"1s"}`, `fixed has no field "wiat"; it has policy, retries, wait,`},
		{`{"policy":"fixed","retries":3}`, "wait: is missing"},
		{`{"policy":"fixed","retries":"3","wait":"1s"}`, `retries: want a whole number, got "3"`},
		{`{"policy":"fixed","retries":1.5,"wait":"1s"}`, "retries: want a whole number, got 1.5"},
		{`{"policy":"fixed","retries":3,"wait":60}`, `wait: want a duration such as "90s", got 60`},
		{`{"policy":"fixed","retries":3,"wait":"60"}`, `wait: "60" has no unit; write 60s or 60m`},
		{`{"policy":"fixed","retries":3,"wait":"-1s"}`, `wait: "-1s" is negative`},
		{`{"policy":"fixed","retries":2147483648,"wait":"1s"}`, "retries is 2147483648; it must be between"},
		{`{"policy":"timetable"}`, "rows: is missing"},
		{`{"policy":"timetable","rows":[]}`, "rows: is empty"},
		{`{"policy":"timetable","rows":[{"younger":"1h","wait":"5m"},{"younger":"5m","wait":"1m"}]}`, "rows[1]: younger 5m is not above the 1h"},
		{`{"policy":"timetable","rows":[{"younger":"1m","wait":"5m"}]}`, "rows[0]: wait 5m is longer than younger 1m"},
		{`{"policy":"timetable","rows":[{"younger":"1m"}]}`, "rows[0].wait: is missing"},
		{`{"policy":"timetable","rows":[{"younger":"1m","wait":"1m","x":1}]}`, `rows[0]: a row has no field "x"; it has younger, wait`},
		{`{"policy":"timetable","rows":[3]}`, "rows[0]: want an object, got 3"},
		{`{"policy":"by_error","cases":[]}`, "cases: is empty"},
		{`{"policy":"by_error","cases":[{"class":"a","then":{"policy":"fixed","retries":1,"wait":"x"}}]}`, `cases[0].then.wait: "x" is not a duration`},
		{`{"policy":"by_error","cases":[{"class":"a","then":"none"},{"then":"none"}]}`, "cases[1].class: is missing"},
		{`{"policy":"by_error","cases":[{"class":"a","then":"nothing"}]}`, `cases[0].then: "nothing": there is no policy "nothing"`},
		{`{"policy":"by_error","cases":[{"class":"a","then":"none"}],"else":null}`, "else: want a policy, got null"},
		{`{"policy":"none","only":[]}`, "only: it names no class"},
		{`{"policy":"none","only":"a"}`, `only: want an array of texts, got "a"`},
		{`{"policy":"none","except":["a",""]}`, "except: classes[1] is empty"},
		{`{"policy":"none","jitter":2}`, "jitter is 2; it must be between 0 and 1"},
		{`{"policy":"none","jitter":"0.1"}`, `jitter: want a number, got "0.1"`},
		{`{"policy":"none","max":"0s"}`, "max is 0s"},
		{`"fixed:3"`, `"fixed:3": write it as fixed:2:1s`},
		{`"{\"policy\":\"none\"}"`, "there is no policy"},
		{nested, "policies are nested deeper than 5"},
	} {
		p := retry.None()
		err := p.UnmarshalJSON([]byte(tt.data))
		if !errors.Is(err, retry.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.80s\n\tgives %v\n\twant one that says %s", tt.data, err, tt.want)
		}
		if p != retry.None() {
			t.Errorf("%.80s changed the policy to %v", tt.data, p)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"policy":"none"}`, `"fixed:3:1s,only=a|b"`, `null`,
		`{"policy":"exponential","retries":10,"first":"1m","only":["timeout"],"jitter":0.1,"max":"1h","deadline":"1d"}`,
		`{"policy":"timetable","rows":[{"younger":"5m","wait":"1m"},{"younger":"1h","wait":"5m"}]}`,
		`{"policy":"by_error","cases":[{"class":"t","then":{"policy":"forever","wait":"1m"}}],"else":{"policy":"function","name":"f"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		var p retry.Policy
		if err := json.Unmarshal([]byte(data), &p); err != nil {
			return
		}
		checkRoundTrips(t, p)
	})
}

// checkRoundTrips checks what holds for every policy without mistake.
func checkRoundTrips(t *testing.T, p retry.Policy) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatalf("read without complaint, but: %v", err)
	}
	first, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back retry.Policy
	if err := json.Unmarshal(first, &back); err != nil || back != p {
		t.Fatalf("JSON %s came back as %v, %v", first, back, err)
	}
	if second, _ := json.Marshal(back); string(second) != string(first) {
		t.Fatalf("JSON is not stable: %s, then %s", first, second)
	}
	if back, err := retry.Parse(p.String()); err != nil || back != p {
		t.Fatalf("text %s came back as %v, %v", p, back, err)
	}
	for _, n := range []int{1, 2, 64, retry.MaxRetries} {
		f := retry.Failure{Charged: n, Classes: []string{"a", "t"}, Due: due, Now: due.Add(time.Minute), Rand: 0.999}
		d := p.Decide(f)
		if d.Wait < 0 || d.Wait > retry.MaxWait || d.Retry != (d.Reason == "") || d != p.Decide(f) {
			t.Fatalf("%s decided %+v about failure %d", p, d, n)
		}
	}
}
