package retry_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/retry"
)

func TestAJobIsFaultyWhenOneMoreTryIsLeftUnlessThePolicySaysWhen(t *testing.T) {
	const never = 0
	for _, tt := range []struct {
		p    retry.Policy
		from int // the number of charged attempts
	}{
		{retry.Default(), 10},
		{retry.Fixed(3, time.Second), 3},
		{retry.Fixed(1, time.Second), 1},
		{retry.Fixed(0, 0), never}, // no try is left
		{retry.None(), never},
		{retry.Forever(time.Second), never},
		{retry.Timetable(), never},
		{retry.Function("f"), never},
		{retry.Default().Faulty(2), 2},
		{retry.Forever(time.Second).Faulty(5), 5},
		{retry.Function("f").Faulty(1), 1},
		{retry.ByError(retry.On("a", retry.Fixed(2, 0)), retry.Otherwise(retry.Fixed(7, 0))), 7},
		{retry.ByError(retry.On("a", retry.Fixed(2, 0)), retry.On("b", retry.None())), 2},
		{retry.ByError(retry.On("a", retry.Fixed(9, 0).Faulty(3)), retry.On("b", retry.Fixed(2, 0))), 3},
		{retry.ByError(retry.On("a", retry.Fixed(2, 0)), retry.Otherwise(retry.Forever(1))), never},
		{retry.ByError(retry.On("a", retry.Fixed(2, 0)), retry.Otherwise(retry.Forever(1))).Faulty(4), 4},
	} {
		for n := range 20 {
			if got, want := tt.p.IsFaulty(n), tt.from != never && n >= tt.from; got != want {
				t.Errorf("%v after %d attempts: faulty %v, want %v", tt.p, n, got, want)
			}
		}
	}
}

func TestFaultyIsWrittenAndRead(t *testing.T) {
	p := retry.Forever(time.Minute).Deadline(time.Hour).Faulty(3)
	if got := p.String(); got != "forever:1m,deadline=1h,faulty=3" {
		t.Errorf("as text it is %s", got)
	}
	b, err := json.Marshal(p)
	if err != nil || string(b) != `{"policy":"forever","wait":"1m","deadline":"1h","faulty":3}` {
		t.Errorf("as JSON it is %s, %v", b, err)
	}
	var q retry.Policy
	if err := json.Unmarshal(b, &q); err != nil || q != p {
		t.Errorf("from JSON it is %v, %v", q, err)
	}
	if q, err := retry.Parse(p.String()); err != nil || q != p {
		t.Errorf("from text it is %v, %v", q, err)
	}
	for text, want := range map[string]string{
		"default,faulty=0":                  "faulty is 0; it must be between 1",
		"default,faulty=two":                `faulty "two" is not a number of attempts`,
		`{"policy":"default","faulty":"3"}`: `faulty: want a whole number, got "3"`,
	} {
		if _, err := retry.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
