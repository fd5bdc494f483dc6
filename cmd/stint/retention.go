package main

import (
	"errors"
	"strings"

	"github.com/stint-go/stint"
)

// retentionValue is a flag that says how long jobs are kept. Given again, it
// adds.
type retentionValue struct{ stint.Retention }

// Set reads parts between commas: [QUEUE:][STATE=]TIME. A queue whose name holds
// a comma can be named in a file.
func (r *retentionValue) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		// Neither a state nor a time holds a colon, a name of a queue may.
		part = strings.TrimSpace(part)
		queue, rest := "", part
		if i := strings.LastIndexByte(part, ':'); i >= 0 {
			queue, rest = part[:i+1], part[i+1:]
		}
		state, age, found := strings.Cut(rest, "=")
		if !found {
			state, age = "*", rest
		}
		if err := r.SetText(queue+strings.TrimSpace(state), strings.TrimSpace(age)); err != nil {
			return err
		}
	}
	return nil
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
