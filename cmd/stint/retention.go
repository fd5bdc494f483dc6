package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stint-go/stint"
)

// retentionValue is a flag that says how long jobs are kept. Given again, it
// adds.
type retentionValue struct{ stint.Retention }

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
