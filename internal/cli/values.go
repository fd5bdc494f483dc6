package cli

import (
	"errors"
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
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// arguments checks how many there are, by the names that the help gives them;
// the first least of them are needed. A last name with dots after it stands for
// any number.
func arguments(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var err error
		switch {
		case len(args) < least:
			err = usagef("%s is missing", strings.TrimSuffix(names[len(args)], "..."))
		case len(args) > len(names) && !strings.HasSuffix(strings.Join(names, " "), "..."):
			err = usagef("%q is one argument too many", args[len(names)])
			if took := tookForArgument(cmd.Flags().Lookup("log-sql"), args); took != "" {
				return withHint(err, "the time follows an equals sign: --log-sql=%s", took)
			}
		default:
			return nil
		}
		return withHint(err, "it is used as: %s", cmd.UseLine())
	}
}

// tookForArgument finds what was meant as the value of a flag that may also have
// none, and so takes none that stands apart.
func tookForArgument(f *pflag.Flag, args []string) string {
	if f == nil || !f.Changed || f.Value.String() != f.NoOptDefVal {
		return ""
	}
	for _, arg := range args {
		if _, err := retry.ParseDuration(arg); err == nil {
			return arg
		}
	}
	return ""
}

// retryValue is a flag that reads a retry policy.
type retryValue struct {
	text   string
	policy retry.Policy
}

func (r *retryValue) Set(text string) error {
	p, err := retry.Parse(text)
	r.text, r.policy = text, p
	return err
}

func (r *retryValue) Type() string   { return "policy" }
func (r *retryValue) String() string { return r.text }

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
		if err := valid.Name(l.field, name); err != nil {
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

// instantValue is a flag that reads a moment as people write it. What names no
// zone is local time.
type instantValue struct {
	time time.Time
	text string
}

var (
	localForms = []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"}
	clockForms = []string{"15:04", "15:04:05"}
)

func (v *instantValue) Set(text string) error {
	t, err := parseInstant(text, time.Now())
	v.time, v.text = t, text
	return err
}

// Form is how it is written in a file, which has dates of its own but not all of
// these.
func (v *instantValue) Form() string { return `a string: "2026-03-01T09:00:00+01:00"` }

func (v *instantValue) Type() string   { return "time" }
func (v *instantValue) String() string { return v.text }

// parseInstant reads RFC 3339, local dates with and without a time, and a time
// of day: the next moment after now when clocks show it.
func parseInstant(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range localForms {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, form := range clockForms {
		t, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		for day := 0; ; day++ {
			next := time.Date(now.Year(), now.Month(), now.Day()+day, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			if next.After(now) {
				return next, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf(`%q is no time; write 2026-03-01T09:00:00+01:00, "2026-03-01 09:00" or 09:00`, text)
}

// sizeValue is a flag that reads a number of bytes with a unit.
type sizeValue int64

// sizes are units, the larger ones first; those with an i are powers of 1024.
var sizes = []struct {
	name string
	size float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3},
}

func (s *sizeValue) Set(text string) error {
	for _, unit := range sizes {
		number, ok := strings.CutSuffix(strings.ToLower(text), strings.ToLower(unit.name))
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch bytes := n * unit.size; {
		case err != nil || math.IsNaN(n):
			return fmt.Errorf("%q is not a number of %s; write for example 512MiB", text, unit.name)
		case bytes < 1:
			return fmt.Errorf("%q is too little", text)
		case bytes >= math.MaxInt64:
			return fmt.Errorf("%q is too much", text)
		default:
			*s = sizeValue(bytes)
		}
		return nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return fmt.Errorf("%q has no unit; write for example %sMiB", text, text)
	}
	return fmt.Errorf("%q is not a size; write for example 512MiB or 1GB", text)
}

func (s *sizeValue) Type() string { return "size" }

func (s *sizeValue) String() string {
	if *s == 0 {
		return ""
	}
	least, name := float64(*s)/(1<<10), "KiB"
	for _, unit := range sizes {
		if n := float64(*s) / unit.size; n == math.Trunc(n) && (n < least || least != math.Trunc(least)) {
			least, name = n, unit.name
		}
	}
	return strconv.FormatFloat(least, 'f', -1, 64) + name
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
		if err := valid.Name("queue", queue); err != nil {
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

// retentionValue is a flag that says how long jobs are kept. Given again, it
// adds.
type retentionValue struct{ store.Retention }

// Set reads parts between commas: [QUEUE:][STATE=]TIME. What can be read in two
// ways is refused, and so is what was said before: what is deleted too soon does
// not come back. A file can say all of it, part by part and by its name.
func (r *retentionValue) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, age, err := splitKept(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		for _, line := range r.Lines() {
			if line.Name == name {
				return fmt.Errorf("%q says something else of %s, of which %s was said already", strings.TrimSpace(part), ofWhat(name), line.Text)
			}
		}
		if err := r.SetText(name, age); err != nil {
			return err
		}
	}
	return nil
}

// splitKept takes one part into the name that a file would have for it, and the
// time.
func splitKept(part string) (name, age string, err error) {
	queue, rest, ofQueue := strings.Cut(part, ":")
	if !ofQueue {
		queue, rest = "", part
	}
	state, age, found := strings.Cut(rest, "=")
	if !found {
		state, age = "*", rest
	}
	state, age = strings.TrimSpace(state), strings.TrimSpace(age)
	if !ofQueue {
		return state, age, nil
	}
	name = queue + ":" + state
	inFile := fmt.Sprintf("a queue that is called so can be named in the file of --config: [retention] and %q = %q", name, age)
	switch {
	case strings.ContainsAny(rest, ":") || strings.ContainsAny(queue, "="):
		return "", "", withHint(fmt.Errorf("%q can be read in more than one way", part),
			"write mail:1h or mail:completed=1h, and a comma before the next; a queue whose name holds : or = can be named in the file of --config")
	case queue == string(stint.Completed) || queue == string(stint.Failed) || queue == string(stint.Cancelled):
		return "", "", withHint(fmt.Errorf("%q is a state, and before the colon stands a queue", queue), "write %s=%s; %s", queue, age, inFile)
	}
	return name, age, nil
}

// SetText adds one thing that stands in a file.
func (r *retentionValue) SetText(name, text string) error {
	err := r.Retention.Set(name, text)
	var invalid *stint.InvalidError
	if errors.As(err, &invalid) && invalid.Field == "retention" {
		return errors.New(invalid.Problem)
	}
	return err
}

// ofWhat names what a line of a retention is about.
func ofWhat(name string) string {
	switch {
	case name == "*":
		return "all"
	case strings.HasSuffix(name, ":*"):
		return "the queue " + strings.TrimSuffix(name, ":*")
	}
	return name
}

func (r *retentionValue) Type() string { return "ages" }

func (r *retentionValue) String() string {
	var parts []string
	for _, line := range r.Lines() {
		if name, all := strings.CutSuffix(line.Name, "*"); all {
			parts = append(parts, name+line.Text)
		} else {
			parts = append(parts, line.Name+"="+line.Text)
		}
	}
	return strings.Join(parts, ",")
}

// everyStatement is what --log-sql means without a value.
const everyStatement = "all"

// logSQLValue is a flag that reads which statements are logged: all, or those
// that took as long as a duration.
type logSQLValue struct {
	on         bool
	slowerThan time.Duration
}

func (l *logSQLValue) Set(text string) error {
	*l = logSQLValue{on: true}
	if text == everyStatement {
		return nil
	}
	var err error
	l.slowerThan, err = retry.ParseDuration(text)
	return err
}

func (l *logSQLValue) Type() string { return "time" }

func (l *logSQLValue) String() string {
	switch {
	case !l.on:
		return ""
	case l.slowerThan == 0:
		return everyStatement
	}
	return retry.FormatDuration(l.slowerThan)
}
