package cli

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/stinttest"
)

func TestTheHistoryIsExportedDayByDay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "jobs.db"), filepath.Join(dir, "archive")
	s, err := sqlite.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	kind := stint.NewKind[map[string]any]("sync", stint.Redact("/token"))
	mux := stint.NewMux()
	stint.Handle(mux, kind, func(context.Context, *stint.Job, map[string]any) error { return nil })
	w := stinttest.On(t, s, mux)
	for range 3 {
		if _, err := kind.Enqueue(t.Context(), w.Client(), map[string]any{"token": "CANARY", "user": 7}); err != nil {
			t.Fatal(err)
		}
	}
	w.Drain(stinttest.FailOnError())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	export := func(want string, args ...string) {
		t.Helper()
		said, errs, code := session(t, false, append([]string{"history", "export", out, "--db", file}, args...)...)
		if code != 0 || said+errs != want {
			t.Errorf("exit code %d, %q %q, want %q", code, said, errs, want)
		}
	}
	export("nothing to write yet: a file is written one hour after its period ends\n")

	db, err := sql.Open("sqlite3", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	day := 24 * time.Hour.Microseconds()
	for _, statement := range []string{
		fmt.Sprintf(`update stint_entries set created = created - %d`, 3*day),
		fmt.Sprintf(`update stint_executions set started = started - %[1]d, finished = finished - %[1]d where pos < 3`, 3*day),
		fmt.Sprintf(`update stint_executions set started = started - %[1]d, finished = finished - %[1]d where pos = 3`, 2*day),
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC()
	name := func(days int) string {
		return now.AddDate(0, 0, -days).Format("jobs-2006-01-02T0000Z") + "-1d.ndjson"
	}
	want := name(3) + "  2 jobs\n" + name(2) + "  1 job\n" + name(1) + "  0 jobs\n"
	if now.Hour() == 0 { // the hour after the day's end
		want = name(3) + "  2 jobs\n" + name(2) + "  1 job\n"
	}
	export(want)
	text, err := os.ReadFile(filepath.Join(out, name(3)))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "CANARY") || strings.Count(string(text), `"token":"[redacted]"`) != 2 || strings.Count(string(text), `"outcome":"completed"`) != 2 {
		t.Errorf("the file has\n%s", text)
	}

	// The sums know of a job that was deleted before.
	if _, err := db.ExecContext(t.Context(), `insert into stint_stats (minutes, start, kind, queue, outcome, n, ran, total, waited) values (60, ?, 'gone', 'default', 1, 4, 4, 1, 1)`,
		now.Truncate(24*time.Hour).AddDate(0, 0, -2).Add(5*time.Hour).UnixMicro()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(out, name(2))); err != nil {
		t.Fatal(err)
	}
	said, errs, code := session(t, false, "history", "export", out, "--db", file)
	if code != exitFailed || !strings.Contains(said, "1 job\n") || !strings.Contains(errs, "4 jobs deleted before") {
		t.Errorf("with jobs deleted before: exit code %d, %q, %q", code, said, errs)
	}
	_, errs, code = session(t, false, "history", "export", out, "--db", file, "--format", "csv")
	if code != exitFailed || !strings.Contains(errs, "take another folder") {
		t.Errorf("another format in the same folder: exit code %d, %s", code, errs)
	}
	_, errs, code = session(t, false, "history", "export", out, "--db", file, "--format", "xml")
	if code != exitUsage || !strings.Contains(errs, "ndjson, csv") {
		t.Errorf("a format that there is not: exit code %d, %s", code, errs)
	}
}
