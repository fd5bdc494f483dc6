package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// syntax is how values of a type are written. The same syntax reads a flag, its
// environment variable and its key in a file.
type syntax[T any] struct {
	name   string // for the help: --grace duration
	form   string // how a file writes it, with an example; "a string" unless given
	parse  func(text string) (T, error)
	format func(T) string // "" for what is not set
}

// textValue is a flag whose text has a syntax.
type textValue[T any] struct {
	syntax[T]
	value *T
}

// in returns a flag that keeps its value in v.
func (s syntax[T]) in(v *T) pflag.Value { return textValue[T]{s, v} }

func (t textValue[T]) Set(text string) (err error) {
	*t.value, err = t.parse(text)
	return err
}

func (t textValue[T]) String() string {
	if t.value == nil {
		return ""
	}
	return t.format(*t.value)
}

func (t textValue[T]) Type() string { return t.name }
func (t textValue[T]) Form() string { return cmp.Or(t.form, "a string") }

// checked is the syntax of a text that a check accepts.
func checked(name string, check func(string) error) syntax[string] {
	return syntax[string]{name: name, parse: func(text string) (string, error) { return text, check(text) }, format: itself}
}

func itself(text string) string { return text }

// oneOf reads one of a few values as they are printed.
func oneOf[T any](values ...T) func(text string) (T, error) {
	return func(text string) (v T, err error) {
		for _, v := range values {
			if fmt.Sprint(v) == text {
				return v, nil
			}
		}
		return v, fmt.Errorf("%q is not one of %s", text, listed(values, ", "))
	}
}

func listed[T any](values []T, separator string) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return strings.Join(all, separator)
}

// nameFlag defines a flag for a name. An empty one is a mistake, most often of a variable in a
// script, and must not mean all.
func nameFlag(flags *pflag.FlagSet, p *string, name, usage string) {
	flags.Var(checked("string", func(text string) error { return valid.Name(name, text) }).in(p), name, usage)
}

// countFlag defines a flag for a number of at least one. TooFew is added to what it says of others.
func countFlag(flags *pflag.FlagSet, p *int, name string, value int, usage, tooFew string) {
	*p = value
	flags.Var(syntax[int]{name: "int", format: strconv.Itoa, parse: func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err == nil && n < 1 {
			err = fmt.Errorf("%d is too few%s", n, tooFew)
		}
		return n, err
	}}.in(p), name, usage)
}

// oneAttempt is why a filter for less than two attempts is a mistake.
const oneAttempt = ": every job has an attempt"

// longerFlag defines a flag for the least duration of attempts.
func longerFlag(flags *pflag.FlagSet, p *time.Duration, value time.Duration, usage string) {
	durationFlag(flags, p, "longer", value, usage)
	s := durations
	s.parse = func(text string) (time.Duration, error) {
		d, err := retry.ParseDuration(text)
		if err == nil && d <= 0 {
			err = errors.New("every attempt takes longer than that")
		}
		return d, err
	}
	flags.Lookup("longer").Value = s.in(p)
}

// idFlag defines a flag for the id of a job.
func idFlag(flags *pflag.FlagSet, p *stint.ID, name, usage string) {
	flags.VarPF(syntax[stint.ID]{name: "int", format: stint.ID.String, parse: func(text string) (stint.ID, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && n < 1 {
			err = fmt.Errorf("%d is not the id of a job", n)
		}
		return stint.ID(n), err
	}}.in(p), name, "", usage).DefValue = ""
}

func choiceFlag(flags *pflag.FlagSet, p *string, name, value, usage string, words ...string) {
	*p = value
	flags.Var(syntax[string]{name: "word", parse: oneOf(words...), format: itself}.in(p), name, usage+": "+listed(words, ", "))
}

var retryPolicies = syntax[retry.Policy]{name: "policy", form: `a string: "fixed:2:1s"`, parse: retry.Parse, format: retry.Policy.String}

// durations are a number and a unit.
var durations = syntax[time.Duration]{name: "duration", form: `a string: "90s"`, parse: retry.ParseDuration, format: retry.FormatDuration}

// durationFlag defines a flag for a duration; the help shows no default of 0.
func durationFlag(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	if f := flags.VarPF(durations.in(p), name, "", usage); value == 0 {
		f.DefValue = ""
	}
}

// atLeast reads a duration that is not shorter than another one.
func atLeast(least time.Duration, text string) (time.Duration, error) {
	d, err := retry.ParseDuration(text)
	if err == nil && d < least {
		err = fmt.Errorf("%q is shorter than %s", text, retry.FormatDuration(least))
	}
	return d, err
}

// durationOr is a duration of at least some length, or a word for a special one.
func durationOr(word string, special, least time.Duration) syntax[time.Duration] {
	return syntax[time.Duration]{name: "duration", form: durations.form,
		parse: func(text string) (time.Duration, error) {
			if text == word {
				return special, nil
			}
			return atLeast(least, text)
		},
		format: func(d time.Duration) string {
			if d == special {
				return word
			}
			return retry.FormatDuration(d)
		},
	}
}

// forever is longer than any program runs.
const forever time.Duration = math.MaxInt64

var (
	intervals = durationOr("off", -1, time.Second)
	waits     = durationOr("forever", forever, 0)
)

// pollRange is a time between two polls, or a range of times that grow from one
// to the other.
type pollRange struct{ every, from, to time.Duration }

// polls are written as a time, or as two with dots between them.
var polls = syntax[pollRange]{name: "time", form: `a string: "2s"`, parse: parsePoll, format: pollRange.String}

func parsePoll(text string) (p pollRange, err error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		p.every, err = atLeast(time.Millisecond, text)
		return p, err
	}
	if p.from, err = atLeast(time.Millisecond, first); err != nil {
		return p, err
	}
	if p.to, err = atLeast(time.Millisecond, last); err == nil && p.from > p.to {
		err = fmt.Errorf("%q ends before it begins", text)
	}
	return p, err
}

func (p pollRange) String() string {
	switch {
	case p.every > 0:
		return retry.FormatDuration(p.every)
	case p.to > 0:
		return retry.FormatDuration(p.from) + ".." + retry.FormatDuration(p.to)
	}
	return ""
}

// sqlLog says which statements are logged: those that take as long as a duration.
type sqlLog struct {
	on         bool
	slowerThan time.Duration
}

// everyStatement is what --log-sql means without a value.
const everyStatement = "all"

var sqlLogs = syntax[sqlLog]{name: "time", form: `a string: "50ms"`,
	parse: func(text string) (l sqlLog, err error) {
		if text != everyStatement {
			l.slowerThan, err = retry.ParseDuration(text)
		}
		l.on = err == nil
		return l, err
	},
	format: func(l sqlLog) string {
		switch {
		case !l.on:
			return ""
		case l.slowerThan == 0:
			return everyStatement
		}
		return retry.FormatDuration(l.slowerThan)
	},
}

// instants are times as people write them. One without a zone is local time.
var instants = syntax[time.Time]{name: "time", form: `a string: "2026-03-01T09:00:00+01:00"`,
	parse: func(text string) (time.Time, error) { return parseInstant(text, time.Now()) },
	format: func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339Nano)
	},
}

var (
	localForms = []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"}
	clockForms = []string{"15:04", "15:04:05"}
)

// parseInstant reads RFC 3339, local dates with and without a time, and a time of day:
// the next time after now at which clocks show it.
func parseInstant(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range localForms {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	if clock, ok := parseClock(text); ok {
		for day := 0; ; day++ {
			if next := clock(now.AddDate(0, 0, day)); next.After(now) {
				return next, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf(`%q is no time; write 2026-03-01T09:00:00+01:00, "2026-03-01 09:00" or 09:00`, text)
}

// parseClock reads a time of day, and returns a function that sets it on a day.
func parseClock(text string) (on func(day time.Time) time.Time, ok bool) {
	for _, form := range clockForms {
		if t, err := time.Parse(form, text); err == nil {
			return func(day time.Time) time.Time {
				return time.Date(day.Year(), day.Month(), day.Day(), t.Hour(), t.Minute(), t.Second(), 0, day.Location())
			}, true
		}
	}
	return nil, false
}

// timeBound is the end of a time range: an instant, a time of today, or how long ago.
type timeBound struct {
	text    string
	instant time.Time
	offset  time.Duration // from now, where there is no instant
}

// timeBounds are written like instants; 2h is two hours ago and +2d in two days.
var timeBounds = syntax[timeBound]{name: "time", form: instants.form, parse: parseBound, format: func(b timeBound) string { return b.text }}

func parseBound(text string) (timeBound, error) {
	b := timeBound{text: text}
	later, plus := strings.CutPrefix(text, "+")
	if d, err := retry.ParseDuration(later); err == nil {
		if b.offset = d; !plus {
			b.offset = -d
		}
		return b, nil
	}
	now := time.Now()
	if clock, ok := parseClock(text); ok {
		b.instant = clock(now)
		return b, nil
	}
	var err error
	if b.instant, err = parseInstant(text, now); err != nil {
		err = fmt.Errorf(`%q is no time; write 2026-03-01T09:00:00+01:00, "2026-03-01 09:00", 09:00, or 2h for two hours ago`, text)
	}
	return b, err
}

// at is the time that is meant; zero when the flag was not given.
func (b timeBound) at(now time.Time) time.Time {
	switch {
	case b.text == "":
		return time.Time{}
	case b.instant.IsZero():
		return now.Add(b.offset)
	}
	return b.instant
}

// sizes are numbers of bytes with a unit; units with an i are powers of 1024.
var sizes = syntax[int64]{name: "size", form: `a string: "512MiB"`, parse: parseSize, format: formatSize}

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3},
}

func parseSize(text string) (int64, error) {
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(strings.ToLower(text), strings.ToLower(unit.name))
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch bytes := n * float64(unit.bytes); {
		case err != nil || math.IsNaN(n):
			return 0, fmt.Errorf("%q is not a number of %s; write for example 512MiB", text, unit.name)
		case bytes < 1:
			return 0, fmt.Errorf("%q is too little", text)
		case bytes >= math.MaxInt64:
			return 0, fmt.Errorf("%q is too much", text)
		default:
			return int64(bytes), nil
		}
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Errorf("%q has no unit; write for example %sMiB", text, text)
	}
	return 0, fmt.Errorf("%q is not a size; write for example 512MiB or 1GB", text)
}

// formatSize writes the smallest whole number of some unit, or else KiB.
func formatSize(size int64) string {
	if size == 0 {
		return ""
	}
	text, least := "", int64(math.MaxInt64)
	for _, unit := range sizeUnits {
		if n := size / unit.bytes; size%unit.bytes == 0 && n < least {
			text, least = fmt.Sprint(n, unit.name), n
		}
	}
	return cmp.Or(text, strconv.FormatFloat(float64(size)/(1<<10), 'f', -1, 64)+"KiB")
}

// listValue is a flag with values separated by commas. Given again, it adds.
type listValue[T comparable] struct {
	to    *[]T
	name  string // for the help
	parse func(text string) (T, error)
}

func nameList(to *[]string, field string) listValue[string] {
	return listValue[string]{to, "names", func(name string) (string, error) { return name, valid.Name(field, name) }}
}

func (l listValue[T]) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if err := l.add(strings.TrimSpace(part)); err != nil {
			return err
		}
	}
	return nil
}

func (l listValue[T]) add(part string) error {
	v, err := l.parse(part)
	if err == nil && !slices.Contains(*l.to, v) {
		*l.to = append(*l.to, v)
	}
	return err
}

// setEntry adds values that may hold commas.
func (l listValue[T]) setEntry(e entry) error {
	items, ok := e.value.([]any)
	switch {
	case !ok:
		return e.isNot(`an array of strings: ["mail", "default"]`)
	case len(items) == 0:
		return e.refuse(errors.New("it is empty"))
	}
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			return e.refuse(fmt.Errorf("there is %s in it; write strings", formOf(item)))
		}
		if err := l.add(text); err != nil {
			return e.refuse(err)
		}
	}
	return nil
}

func (l listValue[T]) Type() string { return l.name }

func (l listValue[T]) String() string {
	if l.to == nil {
		return ""
	}
	return listed(*l.to, ",")
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
	if p.separator == ":" { // as in a header, which may have space
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	}
	(*p.pairs)[name] = value
	return nil
}

func (p pairValue) Type() string   { return "pair" }
func (p pairValue) String() string { return "" }

// addresses are those that a program can listen at. The port is that of examples.
func addresses(port string) syntax[string] {
	return checked("address", func(text string) error { return checkAddress(text, port) })
}

// slotsValue is a flag that reads a number, one for each of some queues, or auto with or without bounds.
type slotsValue struct {
	all  int
	most int // the engine finds their number by itself, up to this; 0 if it does not
	each map[string]int
}

func (s *slotsValue) Set(text string) (err error) {
	*s = slotsValue{}
	if text = strings.TrimSpace(text); strings.HasPrefix(text, autoSlots) {
		return s.setAuto(text)
	}
	if !strings.Contains(text, "=") {
		s.all, err = parseSlots(text)
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
		if err := s.setQueue(strings.TrimSpace(part[:i]), int64(n)); err != nil {
			return err
		}
	}
	return nil
}

// autoSlots has the engine find the number of its slots by itself.
const autoSlots = "auto"

// setAuto reads auto, or auto:8..200.
func (s *slotsValue) setAuto(text string) error {
	if text == autoSlots {
		s.most = engine.DefaultMaxSlots()
		return nil
	}
	from, to, ok := strings.Cut(strings.TrimPrefix(text, autoSlots+":"), "..")
	least, err := strconv.Atoi(from)
	most, bad := strconv.Atoi(to)
	switch {
	case !ok || err != nil || bad != nil:
		return fmt.Errorf("%q is not understood; write auto, or auto:8..200 for 8 at least and 200 at most", text)
	case least < 1:
		return fmt.Errorf("%d is too few", least)
	case most < least:
		return fmt.Errorf("from %d to %d is nothing", least, most)
	}
	s.all, s.most = least, most
	return nil
}

func (s *slotsValue) setEntry(e entry) error {
	if n, ok := e.value.(int64); ok {
		return e.refuse(s.Set(strconv.FormatInt(n, 10)))
	}
	if text, ok := e.value.(string); ok && strings.HasPrefix(text, autoSlots) {
		return e.refuse(s.Set(text))
	}
	return setParts(e, `a number, "auto", or a table: {mail = 4, "*" = 8}`, "a number", s.setQueue)
}

func (s *slotsValue) setQueue(queue string, n int64) error {
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
	s.each[queue] = int(min(n, math.MaxInt32)) // too many for any engine
	return nil
}

func parseSlots(text string) (int, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, autoSlots) {
		return 0, errors.New("auto is for all queues together: write auto, or auto:8..200")
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number; write 50, auto, or mail=4,default=20", text)
	}
	if n < 1 {
		return 0, fmt.Errorf("%d is too few", n)
	}
	return n, nil
}

func (s *slotsValue) Type() string { return "slots" }

func (s *slotsValue) String() string {
	var parts []string
	for _, queue := range slices.Sorted(maps.Keys(s.each)) {
		parts = append(parts, fmt.Sprintf("%s=%d", queue, s.each[queue]))
	}
	switch {
	case s.most > 0 && s.all > 0:
		parts = append(parts, fmt.Sprintf("%s:%d..%d", autoSlots, s.all, s.most))
	case s.most > 0:
		parts = append(parts, autoSlots)
	case s.all > 0:
		parts = append(parts, strconv.Itoa(s.all))
	}
	return strings.Join(parts, ",")
}

// retentionValue is a flag that says how long jobs are kept. Given again, it adds.
type retentionValue struct{ store.Retention }

// Set reads parts between commas: [QUEUE:][STATE=]TIME. It refuses what has two meanings,
// and what contradicts a part before: a job that is deleted too soon does not come back. A
// file has a name for each part.
func (r *retentionValue) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, age, err := splitKept(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		for _, line := range r.Lines() {
			if line.Name == name {
				return fmt.Errorf("%q: the time of %s is given already: %s", strings.TrimSpace(part), ofWhat(name), line.Text)
			}
		}
		if err := r.set(name, age); err != nil {
			return err
		}
	}
	return nil
}

// splitKept splits a part into the name that a file has for it, and the time.
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
	inFile := fmt.Sprintf("a queue of this name can be set in the file of --config: [retention] and %q = %q", name, age)
	switch {
	case strings.ContainsAny(rest, ":") || strings.ContainsAny(queue, "="):
		return "", "", withHint(fmt.Errorf("%q has more than one meaning", part),
			"write mail:1h or mail:completed=1h, and a comma before the next; a queue with : or = in its name can be set in the file of --config")
	case queue == string(stint.Completed) || queue == string(stint.Failed) || queue == string(stint.Cancelled):
		return "", "", withHint(fmt.Errorf("%q is a state, but a queue is needed before the colon", queue), "write %s=%s; %s", queue, age, inFile)
	}
	return name, age, nil
}

func (r *retentionValue) setEntry(e entry) error {
	if text, ok := e.value.(string); ok {
		return e.refuse(r.Set(text))
	}
	return setParts(e, `a string, "5d", or a table: {failed = "30d", "mail:completed" = "1h"}`, "a string", r.set)
}

func (r *retentionValue) set(name, text string) error {
	err := r.Retention.Set(name, text)
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok && invalid.Field == "retention" {
		return errors.New(invalid.Problem)
	}
	return err
}

// ofWhat names what a part is about.
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
