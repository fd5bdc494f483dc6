//go:build unix

package shelljob

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-go/stint"
)

func TestTheLinesOfACommandAreThoseOfItsJob(t *testing.T) {
	args, err := json.Marshal(Args{Shell: "echo one; echo two >&2; printf 'three\\n\\nfour'"})
	if err != nil {
		t.Fatal(err)
	}
	job := &stint.Job{ID: 1, Attempt: 1, Args: args}
	run := &stint.Run{Job: job}
	result, err := Handler(Config{})(run.Context(t.Context()), job)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range run.Log().Lines {
		got = append(got, fmt.Sprint(line.Level, " ", line.Text))
	}
	if fmt.Sprint(got) != "[INFO one INFO two INFO three INFO  INFO four]" {
		t.Errorf("it logged %q", got)
	}
	if want := `{"exit_code":0,"output":"one\ntwo\nthree\n\nfour"}`; string(result) != want {
		t.Errorf("its result is %s, want %s", result, want)
	}
}

func TestLinesThatCommandsWriteInPartsAreWhole(t *testing.T) {
	long := strings.Repeat("x", stint.MaxLine)
	for name, tt := range map[string]struct {
		parts []string
		want  []string
	}{
		"a line in parts":          {[]string{"a", "b\nc", "\n"}, []string{"ab", "c"}},
		"no end":                   {[]string{"a\nb"}, []string{"a", "b"}},
		"nothing":                  {nil, nil},
		"an empty line":            {[]string{"\n", "\n"}, []string{"", ""}},
		"a long line is several":   {[]string{long + long + "y\n"}, []string{long, long, "y"}},
		"a long line in parts":     {[]string{long[1:], "x" + "y", "\n"}, []string{long, "y"}},
		"a carriage return at end": {[]string{"a\r\nb\r\n"}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			run := &stint.Run{Job: &stint.Job{ID: 1}}
			l := newLines(run.Context(t.Context()))
			for _, part := range tt.parts {
				if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatalf("wrote %d of %d, %v", n, len(part), err)
				}
			}
			l.end()
			_, _ = l.Write([]byte("too late\n"))
			var got []string
			for _, line := range run.Log().Lines {
				got = append(got, line.Text)
			}
			if strings.Join(got, "|") != strings.Join(tt.want, "|") || len(got) != len(tt.want) {
				t.Errorf("it logged %.200q, want %.200q", got, tt.want)
			}
		})
	}
	if n, err := newLines(t.Context()).Write([]byte("a\n")); n != 2 || err != nil {
		t.Errorf("outside of a run it wrote %d, %v", n, err)
	}
}
