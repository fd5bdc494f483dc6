package retry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint/retry"
)

func ExampleExponential() {
	policy := retry.Exponential(3, time.Minute)
	for n := 1; n <= 4; n++ {
		d := policy.Decide(retry.Failure{Charged: n})
		fmt.Printf("%d %t %v %q\n", n, d.Retry, d.Wait, d.Reason)
	}
	// Output:
	// 1 true 1m0s ""
	// 2 true 2m0s ""
	// 3 true 4m0s ""
	// 4 false 0s "retries exhausted"
}

func ExampleExponentialWithin() {
	// Ten retries, spread over about a quarter of an hour.
	fmt.Println(retry.ExponentialWithin(1025*time.Second, time.Second))
	// Output: exponential:10:1s
}

func ExampleTimetable() {
	policy := retry.Timetable(
		retry.Row{Younger: 5 * time.Minute, Wait: time.Minute},
		retry.Row{Younger: time.Hour, Wait: 10 * time.Minute},
	)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, age := range []time.Duration{0, 30 * time.Minute, time.Hour} {
		d := policy.Decide(retry.Failure{Charged: 1, Due: noon, Now: noon.Add(age)})
		fmt.Printf("%v %t %v %q\n", age, d.Retry, d.Wait, d.Reason)
	}
	// Output:
	// 0s true 1m0s ""
	// 30m0s true 10m0s ""
	// 1h0m0s false 0s "policy gave no date"
}

func ExamplePolicy_Only() {
	policy := retry.Fixed(5, time.Second).Only("timeout")
	fmt.Println(policy.Decide(retry.Failure{Charged: 1, Classes: []string{"timeout"}}).Retry)
	fmt.Println(policy.Decide(retry.Failure{Charged: 1, Classes: []string{"no_rows"}}).Reason)
	// Output:
	// true
	// error not retriable
}

func ExampleByError() {
	policy := retry.ByError(
		retry.On("rate_limited", retry.Forever(time.Minute).Jitter(0.5)),
		retry.On("bad_address", retry.None()),
		retry.Otherwise(retry.Default()),
	)
	d := policy.Decide(retry.Failure{Charged: 50, Classes: []string{"rate_limited"}})
	fmt.Println(d.Retry, d.Wait)
	// Output: true 1m0s
}

func ExampleRegistry() {
	errQuota := errors.New("quota used up")
	var registry retry.Registry
	err := registry.Register("quota", func(cause error, f retry.Failure) retry.Decision {
		if errors.Is(cause, errQuota) {
			midnight := f.Now.Truncate(24 * time.Hour).Add(24 * time.Hour)
			return retry.Again(midnight.Sub(f.Now)).To("bulk")
		}
		return retry.Final("not worth it")
	})
	if err != nil {
		panic(err)
	}
	failure := retry.Failure{Charged: 1, Now: time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)}
	d, err := registry.Decide(retry.Function("quota"), failure, errQuota)
	fmt.Println(d.Wait, d.Queue, err)
	// Output: 2h0m0s bulk <nil>
}

func ExampleParse() {
	policy, err := retry.Parse("exponential:10:1m,jitter=0.1,max=1h,deadline=24h")
	if err != nil {
		panic(err)
	}
	fmt.Println(policy == retry.Exponential(10, time.Minute).Jitter(0.1).MaxDelay(time.Hour).Deadline(24*time.Hour))

	_, err = retry.Parse("fixed:3:30")
	fmt.Println(err)
	// Output:
	// true
	// invalid retry policy: "fixed:3:30": "30" has no unit; write 30s or 30m
}

func ExamplePolicy_MarshalJSON() {
	b, err := json.Marshal(retry.Fixed(3, 10*time.Second).Only("timeout"))
	fmt.Println(string(b), err)
	// Output: {"policy":"fixed","retries":3,"wait":"10s","only":["timeout"]} <nil>
}

func ExamplePolicy_Validate() {
	policy := retry.Fixed(3, -time.Second)
	fmt.Println(policy.Validate())
	// Output: invalid retry policy: fixed: wait is -1s; it must not be negative
}

func ExamplePolicy_Faulty() {
	policy := retry.Forever(time.Minute).Faulty(3)
	fmt.Println(policy, policy.IsFaulty(2), policy.IsFaulty(3))
	// Output: forever:1m,faulty=3 false true
}

// A predicate and a delay are enough for many functions.
func ExampleWhen() {
	errBusy := errors.New("busy")
	var registry retry.Registry
	err := registry.Register("busy", retry.When(
		func(cause error) bool { return errors.Is(cause, errBusy) },
		func(n int) time.Duration { return time.Duration(n) * time.Second },
	))
	if err != nil {
		panic(err)
	}
	d, _ := registry.Decide(retry.Function("busy"), retry.Failure{Charged: 3}, errBusy)
	fmt.Println(d.Retry, d.Wait)
	d, _ = registry.Decide(retry.Function("busy"), retry.Failure{Charged: 3}, errors.New("broken"))
	fmt.Println(d.Retry, d.Reason)
	// Output:
	// true 3s
	// false error not retriable
}
