package stint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// Limited has the job wait until each of these limits lets it start. All jobs that name a limit
// share it, of whatever kind and queue, over all engines.
//
//	var Send = stint.NewKind[Mail]("send", stint.Limited("smtp"))
//	mux.Limit("smtp", stint.LimitRule{AtOnce: 10})
//
// "tenant=acme" is the limit of one key: every key has its own count, under the rule of the limit
// tenant. [LimitedBy] takes the key from the arguments. A job may name up to eight limits, and starts
// when all of them let it. "3*smtp" counts as three starts under a rate: the same limit named before is
// replaced, so that a job may cost something else than others of its kind. What a limit allows, programs declare ([Mux.Limit]) and people set
// ("stint limits set smtp 20"); a limit without a rule counts and lets all pass. See docs/limits.md.
func Limited(limits ...string) Option {
	return func(j *NewJob) {
		for _, l := range limits {
			_, name := LimitCost(l)
			j.Limits = slices.Clone(j.Limits)
			if i := slices.IndexFunc(j.Limits, func(other string) bool { _, o := LimitCost(other); return o == name }); i >= 0 {
				j.Limits[i] = l
			} else {
				j.Limits = append(j.Limits, l)
			}
		}
	}
}

// LimitedBy is [Limited] by a limit whose key is a part of the arguments: the string, whole number or
// boolean that a JSON pointer (RFC 6901) selects, such as "/tenant" or "/customer/id".
//
//	var Sync = stint.NewKind[SyncArgs]("sync", stint.LimitedBy("tenant", "/tenant"))
//	mux.Limit("tenant", stint.LimitRule{AtOnce: 2}) // of each tenant
func LimitedBy(limit, pointer string) Option { return Limited(limit + by + pointer) }

// Unlimited takes back the limits that the job's kind names.
func Unlimited() Option { return func(j *NewJob) { j.Limits = nil } }

// QueueLimit is the limit under which all jobs count, each by its queue: a rule of "queue=mail" is for all
// jobs of the queue mail together, and one of "queue" for those of each queue. Jobs do not name it.
const QueueLimit = "queue"

// by stands between the name of a limit and the pointer to its key, as "=" does before a key.
const by = " by "

// LimitCost splits what a job names into how many starts it counts as, 1 if that does not stand there, and
// the limit: "3*smtp" is 3 of smtp.
func LimitCost(text string) (cost int, limit string) {
	if number, rest, ok := strings.Cut(text, "*"); ok && len(number) <= 4 && number >= "1" && strings.Trim(number, "0123456789") == "" {
		if cost, _ = strconv.Atoi(number); cost <= maxCost {
			return cost, rest
		}
	}
	return 1, text
}

// maxCost is how many starts one job may count as.
const maxCost = 1000

// maxLimits is how many limits one job may name.
const maxLimits = 8

// LimitRule says what a limit allows, for each of its keys if it has keys. The zero value allows all.
type LimitRule struct {
	// AtOnce is how many jobs run at once over all engines. Zero means any number, and -1 that none
	// starts.
	AtOnce int

	// Starts is how many jobs start in each time Per, evenly spread over it: 100 a minute are one in
	// 600 ms. Zero means any number. Retries count too.
	Starts int
	Per    time.Duration

	// Burst is how many of the starts may come at once after a pause, between 1 and Starts. Zero means 1.
	Burst int

	// TripAfter failures in a row pause the gate for TripFor, and so does a share of TripPercent among
	// the last twenty outcomes: one of the two may be given. Each engine counts those of its own attempts,
	// and pauses for all. After the pause one job starts alone: when it completes, all go on; when it
	// fails, the pause begins again. Zero means never.
	TripAfter   int
	TripPercent int
	TripFor     time.Duration

	// Weight is how many jobs of a key engines take in turn where they take one of a key without a
	// weight, while all of them wait for the same slots. Zero means 1; 100 is the most.
	Weight int

	// InOrder has the jobs start in the order in which they became ready, one after the other, which takes
	// an AtOnce of 1. A job that comes again (it is retried or snoozed, or its engine was lost or gave it
	// back) goes before all that have not begun, and holds them up until it has ended.
	InOrder bool

	// Halt has none start after a job of an order failed for good, until a person retries that job
	// ("stint jobs retry") or lets the others go on without it ("stint limits unblock").
	Halt bool
}

// String is the text that [ParseLimitRule] reads: "10,100/1m,burst=5"; "any" for the zero value.
func (r LimitRule) String() string {
	var parts []string
	if r.AtOnce != 0 {
		parts = append(parts, strconv.Itoa(max(0, r.AtOnce)))
	}
	if r.Starts > 0 {
		parts = append(parts, strconv.Itoa(r.Starts)+"/"+retry.FormatDuration(r.Per))
	}
	if parts == nil {
		parts = []string{anyNumber}
	}
	if r.Burst > 1 {
		parts = append(parts, "burst="+strconv.Itoa(r.Burst))
	}
	if r.InOrder {
		parts = append(parts, inOrder)
	}
	if r.Halt {
		parts = append(parts, halt)
	}
	switch {
	case r.TripAfter > 0:
		parts = append(parts, "trip="+strconv.Itoa(r.TripAfter)+"/"+retry.FormatDuration(r.TripFor))
	case r.TripPercent > 0:
		parts = append(parts, "trip="+strconv.Itoa(r.TripPercent)+"%/"+retry.FormatDuration(r.TripFor))
	}
	if r.Weight > 1 {
		parts = append(parts, "weight="+strconv.Itoa(r.Weight))
	}
	return strings.Join(parts, ",")
}

// anyNumber is the text of a rule that allows all; the others are parts of rules.
const (
	anyNumber = "any"
	inOrder   = "in-order"
	halt      = "halt"
)

// ParseLimitRule reads how many jobs may run at once (10, 0 for none, or any), how many may start in a
// time (100/1m), or both after a comma, and then, in any order, burst=5 of the starts, trip=5/30s or
// trip=50%/30s, weight=3, in-order and halt: 10,100/1m,burst=5,trip=5/30s. Errors are [InvalidError]s.
func ParseLimitRule(text string) (r LimitRule, err error) {
	seen := map[string]bool{}
	for i, part := range strings.Split(text, ",") {
		name, value, option := strings.Cut(part, "=")
		switch {
		case option && !seen[name]:
			seen[name], err = true, r.option(name, value)
		case part == inOrder && i > 0 && !r.InOrder:
			r.InOrder = true
		case part == halt && i > 0 && !r.Halt:
			r.Halt = true
		case option || seen["rate"]:
			err = strconv.ErrSyntax
		case strings.Contains(part, "/"):
			seen["rate"] = true
			r.Starts, r.Per, err = numberOver(part)
		case i > 0:
			err = strconv.ErrSyntax
		case part != anyNumber:
			if r.AtOnce, err = strconv.Atoi(part); r.AtOnce == 0 {
				r.AtOnce = -1
			} else if r.AtOnce < 0 {
				err = strconv.ErrRange
			}
		}
		if err != nil {
			return LimitRule{}, valid.Invalid("limit", "%q is not such as 10, 100/1m, 10,100/1m,burst=5, 1,in-order, any,trip=5/30s, or any", text)
		}
	}
	return r, r.Check()
}

// option reads what stands after "=" in a rule.
func (r *LimitRule) option(name, value string) (err error) {
	switch name {
	case "burst":
		r.Burst, err = positive(value)
	case "weight":
		r.Weight, err = positive(value)
	case "trip":
		if strings.Contains(value, "%/") {
			r.TripPercent, r.TripFor, err = numberOver(strings.Replace(value, "%/", "/", 1))
		} else {
			r.TripAfter, r.TripFor, err = numberOver(value)
		}
	default:
		err = strconv.ErrSyntax
	}
	return err
}

// numberOver reads 100/1m.
func numberOver(text string) (n int, d time.Duration, err error) {
	number, time, _ := strings.Cut(text, "/")
	if n, err = positive(number); err == nil {
		d, err = retry.ParseDuration(time)
	}
	return n, d, err
}

func positive(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err == nil && n <= 0 {
		err = strconv.ErrRange
	}
	return n, err
}

// Check reports what is wrong with the rule, or nil.
func (r LimitRule) Check() error {
	switch {
	case r.AtOnce < -1 || r.AtOnce > maxAtOnce:
		return valid.Invalid("limit", "%d at once is not between 0 and %d", r.AtOnce, maxAtOnce)
	case r.InOrder && r.AtOnce != 1 && r.AtOnce != -1:
		return valid.Invalid("limit", "an order takes a limit of 1 at once")
	case r.Halt && !r.InOrder:
		return valid.Invalid("limit", "only a limit that is in order halts")
	case r.Weight < 0 || r.Weight > 100:
		return valid.Invalid("limit", "a weight of %d is not between 1 and 100", r.Weight)
	}
	if err := r.checkTrip(); err != nil {
		return err
	}
	return r.checkRate()
}

func (r LimitRule) checkRate() error {
	switch {
	case r.Starts < 0 || r.Starts > maxAtOnce:
		return valid.Invalid("limit", "%d starts are not between 1 and %d", r.Starts, maxAtOnce)
	case r.Starts == 0 && (r.Per != 0 || r.Burst != 0):
		return valid.Invalid("limit", "a time or a burst without a number of starts")
	case r.Starts == 0:
		return nil
	case r.Per < time.Millisecond || r.Per > maxPer:
		return valid.Invalid("limit", "%v is not between a millisecond and 31 days", r.Per)
	case r.Per/time.Duration(r.Starts) < 10*time.Microsecond:
		return valid.Invalid("limit", "%d starts in %v are more than 100,000 a second", r.Starts, r.Per)
	case r.Burst < 0 || r.Burst > r.Starts:
		return valid.Invalid("limit", "a burst of %d is not between 1 and %d", r.Burst, r.Starts)
	}
	return nil
}

func (r LimitRule) checkTrip() error {
	switch {
	case r.TripAfter < 0 || r.TripAfter > 1000:
		return valid.Invalid("limit", "%d failures in a row are not between 1 and 1000", r.TripAfter)
	case r.TripPercent < 0 || r.TripPercent > 100:
		return valid.Invalid("limit", "%d %% of failures are not between 1 and 100", r.TripPercent)
	case r.TripAfter > 0 && r.TripPercent > 0:
		return valid.Invalid("limit", "it pauses after failures in a row or after a share of failures, not both")
	case r.TripAfter == 0 && r.TripPercent == 0 && r.TripFor != 0:
		return valid.Invalid("limit", "a pause of %v without a number of failures", r.TripFor)
	case (r.TripAfter > 0 || r.TripPercent > 0) && (r.TripFor < time.Millisecond || r.TripFor > MaxPause):
		return valid.Invalid("limit", "a pause of %v is not between a millisecond and a day", r.TripFor)
	}
	return nil
}

const (
	maxAtOnce = 1_000_000
	maxPer    = 31 * 24 * time.Hour
)

// MaxPause is the longest pause of a limit.
const MaxPause = 24 * time.Hour

// CheckLimitName reports what is wrong with the name of a limit: it has 1 to 100 bytes, and no space, "="
// or "*".
func CheckLimitName(name string) error {
	if err := valid.Name("limit", name); err != nil {
		return err
	}
	if len(name) > 100 || strings.ContainsAny(name, " =*") {
		return valid.Invalid("limit", "%q is not a name of up to 100 bytes without a space, = and *", name)
	}
	return nil
}

// CheckGate reports what is wrong with the name of a limit, or of one of its keys: tenant=acme.
func CheckGate(name string) error {
	name, key, keyed := strings.Cut(name, "=")
	err := CheckLimitName(name)
	if err == nil && keyed {
		err = valid.Name("key", key)
	}
	return err
}

// CheckFor reports what is wrong with the rule as one of a limit, or of one of its keys, or nil.
func (r LimitRule) CheckFor(name string) error {
	err := cmp.Or(CheckGate(name), r.Check())
	if limit, _, _ := strings.Cut(name, "="); err == nil && limit == QueueLimit && r.InOrder {
		err = valid.Invalid("limit", "a queue keeps no order: have its jobs name a limit that does")
	}
	return err
}

// checkLimits checks the limits that the job names. The arguments are not known of a declaration.
func (j NewJob) checkLimits() error {
	if len(j.Limits) > maxLimits {
		return valid.Invalid("limits", "%d are more than %d", len(j.Limits), maxLimits)
	}
	names := map[string]bool{}
	for _, text := range j.Limits {
		_, text = LimitCost(text)
		name, pointer, keyed := strings.Cut(text, by)
		if keyed {
			if err := cmp.Or(checkPointer("limits", pointer), CheckLimitName(name)); err != nil {
				return err
			}
		} else if err := CheckGate(text); err != nil {
			return err
		} else {
			name, _, _ = strings.Cut(text, "=")
		}
		if name == QueueLimit {
			return valid.Invalid("limits", "all jobs count under %s=NAME of their queue; none names it", QueueLimit)
		}
		if names[name] {
			return valid.Invalid("limits", "%s is there twice", name)
		}
		names[name] = true
	}
	if len(j.Args) == 0 || !json.Valid(j.Args) {
		return nil
	}
	_, err := j.LimitKeys()
	if err != nil && j.Sealed != nil {
		return errSealedLimit
	}
	return err
}

// LimitKeys returns the limits that the job names, with the keys that its arguments give: "smtp",
// "tenant=acme", "3*api". They are sorted, one on each line; the text is empty for none. Stores keep it
// with the job.
func (j NewJob) LimitKeys() (string, error) {
	if len(j.Limits) == 0 {
		return "", nil
	}
	lines := make([]string, len(j.Limits))
	var args any
	for i, text := range j.Limits {
		cost, text := LimitCost(text)
		if cost > 1 {
			lines[i] = strconv.Itoa(cost) + "*"
		}
		name, pointer, keyed := strings.Cut(text, by)
		if !keyed {
			lines[i] += text
			continue
		}
		if args == nil {
			d := json.NewDecoder(bytes.NewReader(j.Args))
			d.UseNumber()
			if err := d.Decode(&args); err != nil {
				return "", valid.Invalid("args", "%v", err)
			}
		}
		key, err := limitKey(args, pointer)
		if err != nil {
			return "", err
		}
		lines[i] += name + "=" + key
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// limitKey is what a pointer selects of the arguments, as text.
func limitKey(args any, pointer string) (string, error) {
	at, ok := pointed(args, pointer)
	if !ok {
		return "", valid.Invalid("limits", "the arguments have nothing at %s", pointer)
	}
	switch at := at.(type) {
	case string:
		if at == "" {
			return "", valid.Invalid("limits", "the string at %s of the arguments is empty", pointer)
		}
		return at, valid.Name("limits", at)
	case bool:
		return strconv.FormatBool(at), nil
	case json.Number:
		if n, err := strconv.ParseInt(at.String(), 10, 64); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
	}
	return "", valid.Invalid("limits", "what the arguments have at %s is not a string, whole number or boolean", pointer)
}

// Limit declares what a limit allows. Engines write it into the store when they join, where the last
// declaration stands; what people set stands over it until they reset it. A rule of "tenant=acme" counts
// for that key in place of the one of tenant. It panics when the limit has a rule already, or when the
// rule can never be right.
func (m *Mux) Limit(name string, rule LimitRule) {
	err := rule.CheckFor(name)
	if _, twice := m.limits[name]; err == nil && twice {
		err = fmt.Errorf("it has a rule already")
	}
	if err != nil {
		panic(fmt.Sprintf("stint: limit %q: %v", name, err))
	}
	if m.limits == nil {
		m.limits = map[string]LimitRule{}
	}
	m.limits[name] = rule
}

// Limits returns the rules of the limits that [Mux.Limit] declared.
func (m *Mux) Limits() map[string]LimitRule { return maps.Clone(m.limits) }
