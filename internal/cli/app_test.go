package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// session runs one command line in this process.
func session(t *testing.T, terminal bool, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{
		in: strings.NewReader(""), out: &out, err: &errs, env: func(string) string { return "" },
		exit:        func(int) { t.Error("the program exited by itself") },
		errTerminal: terminal,
	}
	code = a.run(args)
	return out.String(), errs.String(), code
}

func TestPeopleAreToldThatNoEngineRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "my jobs.db")
	out, errs, code := session(t, true, "sh", "--db", file, "--", "true")
	if code != exitOK || out != "1\n" {
		t.Errorf("exit code %d, output %q", code, out)
	}
	if want := "no engine is running: start one with stint up --db '" + file + "'\n"; !strings.HasSuffix(errs, want) {
		t.Errorf("got %q, want %q", errs, want)
	}
}

func TestScriptsGetTheIDAndNothingElse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	for i, want := range []string{"1\n", "2\n"} {
		out, errs, code := session(t, false, "sh", "--db", file, "--", "true")
		if created := i == 0; code != exitOK || out != want || (errs == "") == created {
			t.Errorf("exit code %d, output %q, errors %q", code, out, errs)
		}
	}
}
