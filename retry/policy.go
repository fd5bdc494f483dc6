// Package retry holds retry policies: the answer to "this job failed, shall it
// run again, and when?".
//
// A policy is a value, not an object. It is built from a few words,
//
//	retry.Exponential(10, time.Minute)
//	retry.Fixed(3, 10*time.Second).Only("timeout").Jitter(0.2)
//
// compared with ==, written as text or JSON, stored beside a job, and judged
// later by whichever machine happens to see the failure. Judging is pure: all
// that a policy may look at is in a [Failure], chance and the time included.
//
//	              ┌─────────────────── policy ────────────────────┐
//	Failure ─────▶│ only, except ▶ rule ▶ max ▶ jitter ▶ deadline │─────▶ Decision
//	 charged: 3   └───────────────────────────────────────────────┘        again in 4m,
//	 classes, age                                                          or final, and why
//
// The rule is one of [None], [Fixed], [Forever], [Exponential], [Timetable],
// [ByError] and [Function]; everything else modifies what it says. The zero
// Policy is [Default].
//
// # Mistakes
//
// Constructors and modifiers return a Policy and nothing else, so that a kind
// is declared in one expression at package level. A mistake (a negative wait,
// an empty class) is not lost: the policy carries it, [Policy.Validate] tells
// it, and such a policy can neither be encoded nor stored. Declaring a kind and
// enqueuing a job both call Validate.
//
// # JSON
//
// The stored form is an object; durations are text (see [ParseDuration]):
//
//	{"policy":"none"}
//	{"policy":"fixed","retries":3,"wait":"10s"}
//	{"policy":"forever","wait":"30s"}
//	{"policy":"exponential","retries":10,"first":"1m"}
//	{"policy":"timetable","rows":[{"younger":"5m","wait":"1m"},{"younger":"1h","wait":"5m"}]}
//	{"policy":"by_error","cases":[{"class":"timeout","then":{"policy":"forever","wait":"1m"}}],"else":{"policy":"none"}}
//	{"policy":"function","name":"billing"}
//
// and each may have "only" and "except" (arrays of classes), "jitter" (0 to
// 1), "max" and "deadline" (durations), and "faulty" (a number of attempts):
//
//	{"policy":"exponential","retries":10,"first":"1m","only":["timeout"],"jitter":0.1,"max":"1h","deadline":"1d","faulty":3}
//
// Wherever an object may stand, so may a string with the text form of [Parse]:
// "exponential:10:1m,jitter=0.1". Encoding always gives the object, with its
// fields in this order, so equal policies have equal JSON.
package retry

import (
	"cmp"
	"math"
	"time"

	"github.com/stint-go/stint/internal/named"
)

// Limits of what a policy may say.
const (
	// MaxRetries is the largest number of retries: what fits in 31 bits.
	MaxRetries = math.MaxInt32

	// MaxWait is the longest wait, and where an exponential one stops growing.
	// A hundred years from now is still a date in every database and encoding;
	// the largest time.Duration from now is not.
	MaxWait = 100 * 365 * 24 * time.Hour
)

// Policy says whether and when a failed job runs again. It is a plain value,
// safe to share and to compare with ==: policies that were built alike are
// equal. The zero value is the default policy.
type Policy struct {
	// A nil rule is the default one; Exponential makes sure that the default
	// has no second representation, or == would tell the two apart.
	rule rule

	only, except  classes
	max, deadline time.Duration // 0: none
	jitter        float64
	faulty        int // attempts after which the job counts as faulty; 0: when one more is left

	// The first mistake made while building. It is text rather than an error so
	// that == neither panics nor compares pointers.
	bad string
}

// Default is the policy of kinds that name none, and the zero Policy:
// Exponential(10, time.Minute), so 1, 2, 4, … 512 minutes, 1,023 in all.
func Default() Policy { return Policy{} }

// None retries nothing: the first failure is final, for [ReasonNoRetries]. It is
// about errors. A job whose engine died runs again under None too, as often as
// the limit on losses allows.
func None() Policy { return Policy{rule: none{}} }

// Fixed retries n times, each time after wait, so a job that always fails runs
// n+1 times. The wait may be 0. Fixed(0, …) differs from None in that a lost
// execution uses up its only run.
func Fixed(n int, wait time.Duration) Policy {
	if bad := cmp.Or(checkRetries(n), checkWait("wait", wait, 0)); bad != "" {
		return Policy{bad: "fixed: " + bad}
	}
	return Policy{rule: fixed{n, wait}}
}

// Forever retries after wait without end. The wait may not be 0, for a job that
// fails at once would then keep a slot busy for ever.
func Forever(wait time.Duration) Policy {
	if bad := checkWait("wait", wait, 1); bad != "" {
		return Policy{bad: "forever: " + bad}
	}
	return Policy{rule: forever{wait}}
}

// Exponential retries n times and doubles its wait each time: first, 2×first,
// 4×first, … up to MaxWait.
func Exponential(n int, first time.Duration) Policy {
	if bad := cmp.Or(checkRetries(n), checkWait("first", first, 1)); bad != "" {
		return Policy{bad: "exponential: " + bad}
	}
	if r := (exponential{n, first}); r != byDefault {
		return Policy{rule: r}
	}
	return Default()
}

// ExponentialWithin is Exponential with as many retries as come nearest to
// total when their waits are added up: round(log2(total/first)). The sum may
// exceed total by less than half of it; add a Deadline when it must not.
func ExponentialWithin(total, first time.Duration) Policy {
	if bad := cmp.Or(checkWait("total", total, 1), checkWait("first", first, 1)); bad != "" {
		return Policy{bad: "exponential-within: " + bad}
	}
	n := int(math.Round(math.Log2(float64(total) / float64(first))))
	if n < 1 {
		return Policy{bad: "exponential-within: total " + FormatDuration(total) + " leaves no room for a retry after " +
			FormatDuration(first) + "; make it at least twice as long"}
	}
	return Exponential(n, first)
}

// Function asks the function registered under name in the process that judges
// (see [Registry]): functions cannot be stored, their names can.
func Function(name string) Policy {
	if bad := named.Check("name", name); bad != "" {
		return Policy{bad: "function: " + bad}
	}
	return Policy{rule: function{name}}
}

// Validate returns the first mistake that was made in building the policy, as
// an error that wraps [ErrInvalid], or nil.
func (p Policy) Validate() error {
	if p.bad == "" {
		return nil
	}
	return invalid(p.bad)
}

// Retries returns the largest number of retries that errors can lead to, and
// whether there is one: Forever, a timetable and a function have none. Attempt k
// (counted from 1) is certainly the last when bounded and k > n.
func (p Policy) Retries() (n int, bounded bool) {
	return p.which().retries()
}

// which returns the policy's rule, the default one for the zero value.
func (p Policy) which() rule {
	if p.rule == nil {
		return byDefault
	}
	return p.rule
}
