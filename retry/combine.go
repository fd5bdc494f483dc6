package retry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Row is a line of a timetable: while a job is Younger than this, it waits for
// Wait between its attempts. Age counts from when the job was first due.
type Row struct {
	Younger time.Duration
	Wait    time.Duration
}

// Timetable retries by age: often at first, seldom later, never once the job is
// as old as the last row allows (then it is final, for [ReasonNoDate]). Rows
// ascend by Younger, and no row waits longer than it lasts. Without rows it is
// every minute for 5 minutes, every 5 minutes up to an hour, every hour up to a
// day.
func Timetable(rows ...Row) Policy {
	if len(rows) == 0 {
		rows = []Row{
			{Younger: 5 * time.Minute, Wait: time.Minute},
			{Younger: time.Hour, Wait: 5 * time.Minute},
			{Younger: 24 * time.Hour, Wait: time.Hour},
		}
	}
	for i, row := range rows {
		bad := cmp.Or(checkWait("younger", row.Younger, 1), checkWait("wait", row.Wait, 1))
		switch {
		case bad != "":
		case row.Wait > row.Younger:
			bad = fmt.Sprintf("wait %s is longer than younger %s", FormatDuration(row.Wait), FormatDuration(row.Younger))
		case i > 0 && rows[i-1].Younger >= row.Younger:
			bad = fmt.Sprintf("younger %s is not above the %s of the row before it",
				FormatDuration(row.Younger), FormatDuration(rows[i-1].Younger))
		}
		if bad != "" {
			return Policy{bad: fmt.Sprintf("timetable: rows[%d]: %s", i, bad)}
		}
	}
	return Policy{rule: timetable{chainOf(rows)}}.weighed()
}

// Case pairs a class of errors with the policy for it; see [ByError].
type Case struct {
	class     string
	then      Policy
	otherwise bool
}

// On is the case of errors that have the class.
func On(class string, then Policy) Case { return Case{class: class, then: then} }

// Otherwise is the case of errors that no other case matched. It comes last.
func Otherwise(then Policy) Case { return Case{then: then, otherwise: true} }

// ByError lets the error choose the policy: the first case that matches
// decides, whatever it says. An error that none matches is final, for
// [ReasonNotRetriable].
//
// Whichever policy is chosen looks at the count of all charged attempts, not of
// those with its own errors.
func ByError(cases ...Case) Policy {
	if len(cases) == 0 {
		return Policy{bad: "by_error: it has no cases"}
	}
	for i, c := range cases {
		bad := c.then.bad
		if bad == "" && !c.otherwise {
			bad = checkClass("class", c.class)
		}
		switch {
		case bad != "":
			return Policy{bad: fmt.Sprintf("by_error: cases[%d]: %s", i, bad)}
		case c.otherwise && (i == 0 || i < len(cases)-1):
			return Policy{bad: "by_error: otherwise stands after one or more cases with a class, at the end"}
		}
	}
	return Policy{rule: byError{chainOf(cases)}}.weighed()
}

// Only returns the policy for errors that have at least one of the classes;
// others are final, for [ReasonNotRetriable]. Like every modifier it takes the
// place of an earlier one of its name.
//
// A class is a name that the program declared for some errors, or else the type
// of the innermost error, such as "net.OpError". The type of errors.New is none:
// see [CheckClass].
func (p Policy) Only(names ...string) Policy {
	set, bad := newClasses(names)
	if bad != "" {
		return p.refused("only: " + bad)
	}
	p.only = set
	return p.weighed()
}

// Except returns the policy for errors that have none of the classes; others
// are final, for [ReasonNotRetriable]. Beside Only, both must let an error pass.
func (p Policy) Except(names ...string) Policy {
	set, bad := newClasses(names)
	if bad != "" {
		return p.refused("except: " + bad)
	}
	p.except = set
	return p.weighed()
}

// MaxDelay returns the policy with no wait longer than d.
func (p Policy) MaxDelay(d time.Duration) Policy {
	if bad := checkWait("max", d, 1); bad != "" {
		return p.refused(bad)
	}
	p.max = d
	return p
}

// Jitter returns the policy with each wait shortened by chance, by up to the
// given fraction of it (0 to 1), so that jobs that failed together do not return
// together. It shortens, and after MaxDelay, because lengthened waits would
// gather again at the maximum.
func (p Policy) Jitter(fraction float64) Policy {
	if !(fraction >= 0 && fraction <= 1) { // NaN too
		return p.refused(fmt.Sprintf("jitter is %v; it must be between 0 and 1", fraction))
	}
	p.jitter = fraction
	return p
}

// Deadline returns the policy with an end: no retry is planned for a time when
// the job, counted from when it was first due, would be older than d. It is then
// final, for [ReasonNoDate].
func (p Policy) Deadline(d time.Duration) Policy {
	if bad := checkWait("deadline", d, 1); bad != "" {
		return p.refused(bad)
	}
	p.deadline = d
	return p
}

// Faulty returns the policy with the number of charged attempts after which a
// job counts as faulty: something is wrong with it that people should look at
// before it has failed for good. Without it that is when one more try is left,
// so never for a policy without an end or without a retry; of the cases of
// ByError the most patient counts.
func (p Policy) Faulty(attempts int) Policy {
	if attempts < 1 || attempts > MaxRetries {
		return p.refused(fmt.Sprintf("faulty is %d; it must be between 1 and %d", attempts, MaxRetries))
	}
	p.faulty = attempts
	return p
}

// IsFaulty reports whether a job counts as faulty after so many charged
// attempts, as long as it has not ended.
func (p Policy) IsFaulty(charged int) bool {
	n, ok := p.threshold()
	return ok && n > 0 && charged >= n
}

func (p Policy) threshold() (n int, ok bool) {
	if p.faulty > 0 {
		return p.faulty, true
	}
	if r, ok := p.which().(byError); ok {
		return r.most(Policy.threshold)
	}
	return p.Retries()
}

// refused notes a mistake, unless there was one before it: the first is the
// cause, the rest may follow from it.
func (p Policy) refused(bad string) Policy {
	p.bad = cmp.Or(p.bad, bad)
	return p
}

// classes is a set of error classes as sorted lines, which unlike a slice can
// be compared. Names contain no control characters, hence no newline.
type classes string

func newClasses(names []string) (set classes, bad string) {
	if len(names) == 0 {
		return "", "it names no class"
	}
	for i, name := range names {
		if bad := checkClass(fmt.Sprintf("classes[%d]", i), name); bad != "" {
			return "", bad
		}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return classes(strings.Join(names, "\n")), ""
}

// names lists the set in order; the empty set is nil.
func (c classes) names() []string {
	if c == "" {
		return nil
	}
	return strings.Split(string(c), "\n")
}

// match reports whether any of an error's classes is in the set.
func (c classes) match(names []string) bool {
	return slices.ContainsFunc(c.names(), func(name string) bool { return slices.Contains(names, name) })
}
