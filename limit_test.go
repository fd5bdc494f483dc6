package stint_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

func TestLimitRulesSurviveTheirTexts(t *testing.T) {
	for text, want := range map[string]stint.LimitRule{
		"any":                {},
		"0":                  {AtOnce: -1},
		"10":                 {AtOnce: 10},
		"100/1m":             {Starts: 100, Per: time.Minute},
		"100/1m,burst=5":     {Starts: 100, Per: time.Minute, Burst: 5},
		"10,100/1m":          {AtOnce: 10, Starts: 100, Per: time.Minute},
		"10,100/1m,burst=20": {AtOnce: 10, Starts: 100, Per: time.Minute, Burst: 20},
		"any,trip=5/30s":     {TripAfter: 5, TripFor: 30 * time.Second},
		"any,weight=3":       {Weight: 3},
		"0,trip=50%/1m":      {AtOnce: -1, TripPercent: 50, TripFor: time.Minute},
		"1,2/1s,burst=2,trip=1/1s,weight=100": {
			AtOnce: 1, Starts: 2, Per: time.Second, Burst: 2, TripAfter: 1, TripFor: time.Second, Weight: 100},
		"1,in-order":      {AtOnce: 1, InOrder: true},
		"0,in-order,halt": {AtOnce: -1, InOrder: true, Halt: true},

		"1,100/1m,burst=5,in-order,halt": {AtOnce: 1, Starts: 100, Per: time.Minute, Burst: 5, InOrder: true, Halt: true},
	} {
		got, err := stint.ParseLimitRule(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v %q, %v", text, got, got, err)
		}
	}
}

func TestBadLimitRulesAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "ten", "-1", "1.5", "10,10", "10/0s", "0/1m", "10/1m,20/1m", "burst=3", "10,burst=3", "10/1m,burst=0", "10/1m,burst=11",
		"10/1m,burst=2,burst=2", "1000001", "10/1us", "10/60d", "200000/1s", "10 at once", "any,trip=5", "any,trip=0/1s", "any,trip=5/2d", "any,trip=101%/1s", "any,trip=%/1s", "any,trip=5%%/1s", "any,weight=0", "any,weight=101",
		"any,weight=1,weight=2", "any,trip=1/1s,trip=2/1s", "any,color=red", "weight=2,10", "10/1m,any", "any,10", "2,in-order", "in-order", "10/1m,in-order", "1,halt", "1,in-order,in-order",
		"1,in-order,halt,halt", "any,in-order", "9999999999999999999",
	} {
		if r, err := stint.ParseLimitRule(text); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

func TestLimitKeysComeFromTheArguments(t *testing.T) {
	for _, c := range []struct {
		limits     []string
		args, want string
	}{
		{nil, `{}`, ""},
		{[]string{"smtp"}, `{}`, "smtp"},
		{[]string{"tenant by /tenant", "erp", "region=eu west=1"}, `{"tenant":"a b"}`, "erp\nregion=eu west=1\ntenant=a b"},
		{[]string{"n by /n"}, `{"n":9007199254740993}`, "n=9007199254740993"},
		{[]string{"n by /n"}, `{"n":-0}`, "n=0"},
		{[]string{"b by /list/1/b"}, `{"list":[0,{"b":false}]}`, "b=false"},
		{[]string{"s by /a~1b"}, `{"a/b":"x"}`, "s=x"},
		{[]string{"3*smtp", "1000*tenant by /t", "1*one", "7*key=2*3"}, `{"t":"5*x"}`, "1000*tenant=5*x\n3*smtp\n7*key=2*3\none"},
	} {
		got, err := stint.NewJob{Kind: "k", Args: json.RawMessage(c.args), Limits: c.limits}.LimitKeys()
		if err != nil || got != c.want {
			t.Errorf("%q of %s: %q, %v", c.limits, c.args, got, err)
		}
	}
}

func TestBadLimitsOfJobsAreRefused(t *testing.T) {
	for _, c := range []struct {
		limits []string
		args   string
	}{
		{[]string{""}, `{}`},
		{[]string{"two words"}, `{}`},
		{[]string{"a by b"}, `{"b":1}`},
		{[]string{"a by /b"}, `{}`},
		{[]string{"a by /b"}, `{"b":1.5}`},
		{[]string{"a by /b"}, `{"b":1e3}`},
		{[]string{"a by /b"}, `{"b":null}`},
		{[]string{"a by /b"}, `{"b":["x"]}`},
		{[]string{"a by /b"}, `{"b":""}`},
		{[]string{"a by /b"}, `{"b":"x\ny"}`},
		{[]string{"a by /b"}, `{"b":99999999999999999999}`},
		{[]string{"a="}, `{}`},
		{[]string{"0*a"}, `{}`},
		{[]string{"1001*a"}, `{}`},
		{[]string{"01*a"}, `{}`},
		{[]string{"-1*a"}, `{}`},
		{[]string{"2*"}, `{}`},
		{[]string{"2*3*a"}, `{}`},
		{[]string{"a*2"}, `{}`},
		{[]string{"a", "2*a"}, `{}`},
		{[]string{"2*queue=mail"}, `{}`},
		{[]string{"a=b by /c"}, `{"c":1}`},
		{[]string{"a=x", "a=y"}, `{}`},
		{[]string{"a=" + strings.Repeat("x", 256)}, `{}`},
		{[]string{strings.Repeat("x", 101)}, `{}`},
		{strings.Split("a b c d e f g h i", " "), `{}`},
	} {
		if err := (stint.NewJob{Kind: "k", Args: json.RawMessage(c.args), Limits: c.limits}).Check(stint.Limits{}); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%q of %s: %v", c.limits, c.args, err)
		}
	}
}

func TestLimitsOfAKindAndOfAJobAddUp(t *testing.T) {
	kind := stint.NewKind[struct{}]("k", stint.Limited("a"), stint.LimitedBy("t", "/t"))
	job, err := kind.New(struct{}{}, stint.Limited("b", "a"))
	if err != nil || strings.Join(job.Limits, ", ") != "a, t by /t, b" {
		t.Errorf("%q, %v", job.Limits, err)
	}
	dear, _ := kind.New(struct{}{}, stint.Limited("5*a"), stint.Limited("2*t by /t"))
	if strings.Join(dear.Limits, ", ") != "5*a, 2*t by /t" {
		t.Errorf("a job that costs more has the limits %q", dear.Limits)
	}
	other, _ := kind.New(struct{}{}, stint.Limited("c"))
	if strings.Join(other.Limits, ", ") != "a, t by /t, c" || len(job.Limits) != 3 {
		t.Errorf("the jobs of a kind share their limits: %q, %q", job.Limits, other.Limits)
	}
	if free, _ := kind.New(struct{}{}, stint.Unlimited()); len(free.Limits) > 0 {
		t.Errorf("%q", free.Limits)
	}
}

func TestALimitIsDeclaredOnce(t *testing.T) {
	mux := stint.NewMux()
	mux.Limit("a", stint.LimitRule{AtOnce: 1})
	for name, rule := range map[string]stint.LimitRule{"a": {}, "b c": {}, "d": {AtOnce: -2}, "e": {Burst: 3}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s %+v was taken", name, rule)
				}
			}()
			mux.Limit(name, rule)
		}()
	}
	if rules := mux.Limits(); len(rules) != 1 || rules["a"].AtOnce != 1 {
		t.Error(rules)
	}
}
