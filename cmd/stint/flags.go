package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// arguments checks how many there are, by the names that the help gives them;
// the first least of them are needed.
func arguments(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var err error
		switch {
		case len(args) < least:
			err = usagef("%s is missing", names[len(args)])
		case len(args) > len(names):
			err = usagef("%q is one argument too many", args[len(names)])
		default:
			return nil
		}
		return withHint(err, "it is used as: %s", cmd.UseLine())
	}
}

// durationValue is a flag that reads a number with a unit.
type durationValue time.Duration

// durationFlag defines a flag for a duration; 0 is shown as no default.
func durationFlag(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	flags.Var((*durationValue)(p), name, usage)
}

func (d *durationValue) Set(text string) error {
	v, err := retry.ParseDuration(text)
	*d = durationValue(v)
	return err
}

func (d *durationValue) Type() string { return "duration" }

func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return retry.FormatDuration(time.Duration(*d))
}

// retryValue is a flag that reads a retry policy.
type retryValue struct{ policy retry.Policy }

func (r *retryValue) Set(text string) error {
	p, err := retry.Parse(text)
	r.policy = p
	return err
}

func (r *retryValue) Type() string   { return "policy" }
func (r *retryValue) String() string { return "" }

// listValue is a flag with names separated by commas. Given again, it adds.
type listValue struct {
	names *[]string
	field string
}

func (l listValue) Set(text string) error {
	names := strings.Split(text, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return l.SetList(names)
}

// SetList adds names as they are.
func (l listValue) SetList(names []string) error {
	for _, name := range names {
		if err := stint.CheckName(l.field, name); err != nil {
			return err
		}
		if !slices.Contains(*l.names, name) {
			*l.names = append(*l.names, name)
		}
	}
	return nil
}

func (l listValue) Type() string { return "names" }

func (l listValue) String() string {
	if l.names == nil {
		return ""
	}
	return strings.Join(*l.names, ",")
}

// slotsValue is a flag that reads a number, or one for each of some queues.
type slotsValue struct {
	all  int
	each map[string]int
}

func (s *slotsValue) Set(text string) error {
	*s = slotsValue{}
	if !strings.Contains(text, "=") {
		n, err := parseSlots(text)
		s.all = n
		return err
	}
	for part := range strings.SplitSeq(text, ",") {
		i := strings.LastIndexByte(part, '=')
		if i < 0 {
			return fmt.Errorf("%q has no number; write for example mail=4,default=20", part)
		}
		n, err := parseSlots(part[i+1:])
		if err != nil {
			return err
		}
		if err := s.SetPart(strings.TrimSpace(part[:i]), int64(n)); err != nil {
			return err
		}
	}
	return nil
}

// SetPart adds the slots of a queue.
func (s *slotsValue) SetPart(queue string, n int64) error {
	if queue != "*" {
		if err := stint.CheckName("queue", queue); err != nil {
			return err
		}
	}
	if _, twice := s.each[queue]; twice {
		return fmt.Errorf("the queue %s is there twice", queue)
	}
	if n < 1 {
		return fmt.Errorf("%d is too few", n)
	}
	if s.each == nil {
		s.each = map[string]int{}
	}
	s.each[queue] = int(min(n, math.MaxInt32)) // where numbers are small, it stays too many
	return nil
}

func parseSlots(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%q is not a number; write 50, or mail=4,default=20", text)
	}
	if n < 1 {
		return 0, fmt.Errorf("%d is too few", n)
	}
	return n, nil
}

func (s *slotsValue) Type() string { return "slots" }

func (s *slotsValue) String() string {
	if s.each == nil {
		if s.all == 0 {
			return ""
		}
		return strconv.Itoa(s.all)
	}
	var parts []string
	for _, queue := range slices.Sorted(maps.Keys(s.each)) {
		parts = append(parts, fmt.Sprintf("%s=%d", queue, s.each[queue]))
	}
	return strings.Join(parts, ",")
}

// everyValue is a flag that reads how often something happens, or that it never
// does.
type everyValue struct{ every time.Duration }

func (e *everyValue) Set(text string) error {
	if text == "off" {
		e.every = -1
		return nil
	}
	d, err := retry.ParseDuration(text)
	if err == nil && d < time.Second {
		err = fmt.Errorf("%q is shorter than a second", text)
	}
	e.every = d
	return err
}

func (e *everyValue) Type() string { return "duration" }

func (e *everyValue) String() string {
	switch {
	case e.every < 0:
		return "off"
	case e.every == 0:
		return ""
	}
	return retry.FormatDuration(e.every)
}

// pollValue is a flag that reads a time, or two with dots between them.
type pollValue struct{ every, from, to time.Duration }

func (p *pollValue) Set(text string) (err error) {
	*p = pollValue{}
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		p.every, err = parsePoll(text)
		return err
	}
	if p.from, err = parsePoll(first); err != nil {
		return err
	}
	if p.to, err = parsePoll(last); err != nil {
		return err
	}
	if p.from > p.to {
		return fmt.Errorf("%q ends before it begins", text)
	}
	return nil
}

func parsePoll(text string) (time.Duration, error) {
	d, err := retry.ParseDuration(text)
	if err == nil && d < time.Millisecond {
		err = fmt.Errorf("%q is shorter than a millisecond", text)
	}
	return d, err
}

func (p *pollValue) Type() string { return "time" }

func (p *pollValue) String() string {
	switch {
	case p.every > 0:
		return retry.FormatDuration(p.every)
	case p.to > 0:
		return retry.FormatDuration(p.from) + ".." + retry.FormatDuration(p.to)
	}
	return ""
}

// choiceValue is a flag that is one of a few words.
type choiceValue struct {
	value   *string
	choices []string
}

func choiceFlag(flags *pflag.FlagSet, p *string, name, value, usage string, choices ...string) {
	*p = value
	flags.Var(choiceValue{p, choices}, name, usage+": "+strings.Join(choices, ", "))
}

func (c choiceValue) Set(text string) error {
	if !slices.Contains(c.choices, text) {
		return fmt.Errorf("%q is not one of %s", text, strings.Join(c.choices, ", "))
	}
	*c.value = text
	return nil
}

func (c choiceValue) Type() string { return "word" }

func (c choiceValue) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// pairValue is a flag of the form NAME=VALUE that may be given many times.
type pairValue struct {
	pairs     *map[string]string
	separator string
	example   string
}

func (p pairValue) Set(text string) error {
	name, value, ok := strings.Cut(text, p.separator)
	if !ok {
		return fmt.Errorf("%q has no %q; write for example %s", text, p.separator, p.example)
	}
	if *p.pairs == nil {
		*p.pairs = map[string]string{}
	}
	if p.separator == ":" { // as in a header, where people put space
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	}
	(*p.pairs)[name] = value
	return nil
}

func (p pairValue) Type() string   { return "pair" }
func (p pairValue) String() string { return "" }
