package shelljob

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs"
)

func TestArgumentsThatCanNeverBeRightAreNamed(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{`{}`, "args: one of argv and shell is needed"},
		{`null`, "args: one of argv and shell is needed"},
		{`{"argv":["ls"],"shell":"ls"}`, "args: argv and shell exclude each other"},
		{`{"argv":[""]}`, "args.argv: the program's name is empty"},
		{`{"argv":["ls","a\u0000b"]}`, "args.argv: argument 1 holds a NUL character"},
		{`{"argv":"ls -l"}`, "args.argv: got a JSON string, want []string"},
		{`{"argv":["ls"],"evn":{}}`, `args: unknown field "evn"`},
		{`{"argv":["ls"],"env":{"A=B":"c"}}`, `args.env: "A=B" cannot be a variable's name`},
		{`{"argv":["ls"],"env":{"":"c"}}`, "args.env: a variable's name is empty"},
		{`{"argv":["ls"],"env":{"A":"\u0000"}}`, "args.env: the value of A holds a NUL character"},
		{`{"shell":"\u0000"}`, "args.shell: it holds a NUL character"},
		{`{"shell":"ls","dir":"\u0000"}`, "args.dir: it holds a NUL character"},
		{`{"shell":"ls"} {}`, "args: more than one JSON value"},
		{`["ls"]`, "args: got a JSON array, want an object"},
		{`{"shell":`, "args: unexpected EOF"},
	} {
		_, err := jobs.Decode[Args](json.RawMessage(tt.args))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.args, err, tt.want)
		}
		if !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%s: %v is not an invalid input", tt.args, err)
		}
	}
}

func TestVariablesAreInheritedOnlyFromTheList(t *testing.T) {
	t.Setenv("STINT_DB", "postgres://user:secret@db/jobs")
	t.Setenv("LC_STINT", "kept")
	t.Setenv("OTHER", "also")
	job := &stint.Job{ID: 7, Attempt: 2, Queue: "night"}
	for _, tt := range []struct {
		name       string
		config     Config
		has, lacks string
	}{
		{"by default", Config{}, "LC_STINT=kept", "STINT_DB="},
		{"by name", Config{Env: []string{"OTHER"}}, "OTHER=also", "LC_STINT="},
		{"none", Config{Env: []string{}}, "STINT_ATTEMPT=2", "OTHER="},
		{"all", Config{Env: []string{"*"}}, "STINT_DB=postgres://user:secret@db/jobs", "NOTHING"},
	} {
		env := "\n" + strings.Join(tt.config.environ(job, nil), "\n") + "\n"
		if !strings.Contains(env, "\n"+tt.has+"\n") || strings.Contains(env, "\n"+tt.lacks) {
			t.Errorf("%s: want %s and not %s in%s", tt.name, tt.has, tt.lacks, env)
		}
	}
}

func TestNothingReplacesTheJobsOwnVariables(t *testing.T) {
	job := &stint.Job{ID: 7, Attempt: 2, Queue: "night"}
	got := Config{Env: []string{}}.environ(job, map[string]string{"STINT_JOB": "8", "A": "b"})
	want := []string{"A=b", "STINT_JOB=8", "STINT_JOB=7", "STINT_ATTEMPT=2", "STINT_MAY_HAVE_RUN=false", "STINT_QUEUE=night", "STINT_CORRELATION=7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the last one of a name counts (-want +got):\n%s", diff)
	}
}

// What decode accepts means the same after a round trip, as it does when one
// engine's arguments are enqueued again.
func FuzzDecode(f *testing.F) {
	f.Add(`{"argv":["echo","hello"]}`)
	f.Add(`{"shell":"exit 3","dir":"/","env":{"A":"b"},"stdin":"x"}`)
	f.Add(`{"argv":[]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		args, err := jobs.Decode[Args](json.RawMessage(raw))
		if err != nil {
			if !errors.Is(err, stint.ErrInvalid) {
				t.Fatalf("%v is not an invalid input", err)
			}
			return
		}
		again, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		back, err := jobs.Decode[Args](again)
		if err != nil {
			t.Fatalf("%s was accepted as %s, which is refused: %v", raw, again, err)
		}
		third, _ := json.Marshal(back)
		if string(third) != string(again) {
			t.Fatalf("%s became %s", again, third)
		}
	})
}
