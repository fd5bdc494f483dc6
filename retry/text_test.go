package retry_test

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/retry"
)

func TestTextFormsAreRead(t *testing.T) {
	for _, tt := range []struct {
		text string
		want retry.Policy
		back string // how it is written, when otherwise
	}{
		{"none", retry.None(), ""},
		{"default", retry.Default(), "exponential:10:1m"},
		{"fixed:2:1s", retry.Fixed(2, time.Second), ""},
		{"forever:30s", retry.Forever(30 * time.Second), ""},
		{"exponential:10:60s", retry.Default(), "exponential:10:1m"},
		{"exponential-within:1025s:1s", retry.Exponential(10, time.Second), "exponential:10:1s"},
		{"timetable", retry.Timetable(), "timetable:5m=1m,1h=5m,1d=1h"},
		{"timetable:5m=1m,1h=5m,24h=1h", retry.Timetable(), "timetable:5m=1m,1h=5m,1d=1h"},
		{"timetable:5m=1m,jitter=0.5", retry.Timetable(retry.Row{Younger: 5 * time.Minute, Wait: time.Minute}).Jitter(0.5), ""},
		{"function:billing:v2", retry.Function("billing:v2"), ""},
		{
			"exponential:10:1m,deadline=24h,max=1h,jitter=.1,except=c,only=b|a",
			retry.Default().Jitter(0.1).MaxDelay(time.Hour).Deadline(24*time.Hour).Only("a", "b").Except("c"),
			"exponential:10:1m,only=a|b,except=c,jitter=0.1,max=1h,deadline=1d",
		},
		{`{"policy":"none"}`, retry.None(), "none"},
	} {
		got, err := retry.Parse(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("%s is %v, %v; want %v", tt.text, got, err, tt.want)
		}
		back := tt.back
		if back == "" {
			back = tt.text
		}
		if got.String() != back {
			t.Errorf("%s is written %s, want %s", tt.text, got, back)
		}
	}
}

func TestAPolicyByErrorIsALineForEachClass(t *testing.T) {
	nested := retry.ByError(retry.On("x", retry.None()), retry.Otherwise(retry.Fixed(1, time.Second).Jitter(0.5)))
	for _, tt := range []struct {
		policy retry.Policy
		want   string
	}{
		{retry.Default(), "exponential:10:1m"},
		{retry.Function("a,b"), `{"policy":"function","name":"a,b"}`},
		{retry.ByError(retry.On("timeout", retry.Forever(time.Minute))), "by_error\ntimeout: forever:1m\nother errors: none"},
		{retry.ByError(retry.On("a", retry.None()), retry.Otherwise(retry.Default())).Deadline(time.Hour).Faulty(3), "by_error,deadline=1h,faulty=3\na: none\nother errors: exponential:10:1m"},
		{retry.ByError(retry.On("a", nested), retry.Otherwise(nested)), "by_error\na: (by_error; x: none; other errors: fixed:1:1s,jitter=0.5)\nother errors: (by_error; x: none; other errors: fixed:1:1s,jitter=0.5)"},
		{retry.Fixed(-1, 0), retry.Fixed(-1, 0).String()},
	} {
		if got := strings.Join(tt.policy.Lines(), "\n"); got != tt.want {
			t.Errorf("%v is shown as\n%s\nwant\n%s", tt.policy, got, tt.want)
		}
	}
}

func TestWhatHasNoTextFormIsWrittenAsJSON(t *testing.T) {
	for _, p := range []retry.Policy{
		retry.ByError(retry.On("a", retry.None())),
		retry.None().Only("map[string]a,b"),
		retry.None().Except("a|b"),
		retry.Function("a,b"),
	} {
		if s := p.String(); s[0] != '{' || parse(t, s) != p {
			t.Errorf("written as %s", s)
		}
	}
}

func TestTextMistakesCarryAHint(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `there is no policy ""; there are none, default, fixed`},
		{"linear:3", `there is no policy "linear"`},
		{"Fixed:2:1s", `there is no policy "Fixed"`},
		{"none:", "write it as none"},
		{"fixed", "write it as fixed:2:1s"},
		{"fixed:2", "write it as fixed:2:1s"},
		{"fixed:2:1s:3", "write it as fixed:2:1s"},
		{"fixed:two:1s", `retries "two" is not a whole number`},
		{"fixed:2:30", `"30" has no unit; write 30s or 30m`},
		{"fixed:-1:1s", "retries is -1"},
		{"exponential:99999999999999999999:1s", "is not a whole number up to 2147483647"},
		{"timetable:", `row "" has no wait; write it as 5m=1m`},
		{"timetable:5m", `row "5m" has no wait; write it as 5m=1m`},
		{"timetable:5m=1m,1m=1m", "rows[1]: younger 1m is not above"},
		{"function", "name is empty"},
		{"none,jitter", `"" is not a fraction`},
		{"none,jitter=10%", `"10%" is not a fraction`},
		{"none,jitter=nan", "jitter is NaN"},
		{"none,max=1h,max=2h", "max is given twice"},
		{"none,only=", "classes[0] is empty"},
		{"none,5m=1m", `there is no option "5m"; there are jitter, max,`},
		{"linear,max=1", `there is no policy "linear"`}, // the first mistake
		{`{"policy":"linear"}`, `policy: is "linear"`},
	} {
		_, err := retry.Parse(tt.text)
		if !errors.Is(err, retry.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s gives %v, want an error that says %s", tt.text, err, tt.want)
		}
	}
}

func TestAPolicyCanBeAFlag(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	var p retry.Policy
	flags.TextVar(&p, "retry", retry.Default(), "")
	if err := flags.Parse([]string{"--retry", "fixed:2:1s"}); err != nil || p != retry.Fixed(2, time.Second) {
		t.Errorf("the flag is %v, %v", p, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"none", "default", "fixed:2:1s", "forever:1h30m", "exponential:10:1m,jitter=0.1,max=1h,deadline=1d",
		"exponential-within:1025s:1s", "timetable:5m=1m,1h=5m,24h=1h,only=a|b,except=c", "function:a:b", `{"policy":"none"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := retry.Parse(text)
		if err != nil {
			return
		}
		checkRoundTrips(t, p)
	})
}
