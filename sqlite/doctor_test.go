package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/storetest"
)

// examined are the findings of a look at a file, as the doctor opens it.
func examined(t testing.TB, path string, e report.Options, n norms) []report.Finding {
	t.Helper()
	s := open(t, path, Config{ReadOnly: true, NoInstall: true, SkipCheck: true})
	signs, err := s.examine(t.Context(), e, n)
	if err != nil {
		t.Fatal(err)
	}
	return signs.Findings
}

func has(t testing.TB, all []report.Finding, severity report.Severity, code, subject, problem, remedy string) {
	t.Helper()
	i := slices.IndexFunc(all, func(f report.Finding) bool { return f.Code == code && f.Subject == subject })
	if i < 0 {
		t.Errorf("no %s about %q is found, but %+v", code, subject, all)
	} else if f := all[i]; f.Severity != severity || !strings.Contains(f.Problem, problem) || !strings.Contains(f.Remedy, remedy) {
		t.Errorf("found is %+v\nwant a %s with %q and %q", f, severity, problem, remedy)
	}
}

// file makes one with a few jobs in it, which nobody has open.
func file(t testing.TB, changes ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := Open(t.Context(), path)
	if err == nil {
		enqueue(t, s, someJobs(10))
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		beside(t, path, change)
	}
	return path
}

// beside runs SQL on a file beside the store.
func beside(t testing.TB, path, text string) {
	t.Helper()
	db, err := sqlite3.Open("file:" + path)
	if err == nil {
		err = errors.Join(db.Exec(text), db.Close())
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func TestAHealthyFileHasNothing(t *testing.T) {
	t.Parallel()
	if all := examined(t, file(t), report.Options{Deep: true}, usual); len(all) > 0 {
		t.Errorf("found is %+v", all)
	}
	prefixed := filepath.Join(t.TempDir(), "jobs.db")
	for _, prefix := range []string{"stint_", "stint_b_"} { // one begins with the other
		s := open(t, prefixed, Config{Prefix: prefix})
		signs, err := s.Examine(t.Context(), report.Options{})
		if err != nil || len(signs.Findings) > 0 {
			t.Errorf("with the prefix %s, found is %+v, error %v", prefix, signs.Findings, err)
		}
	}
}

// Each way in which a schema differs is told with the object.
func TestWhatSomebodyChangedInTheSchemaIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change                         string
		severity                       report.Severity
		code, subject, problem, remedy string
	}{
		"an index is gone":        {`drop index stint_entries_lane`, report.SeverityProblem, "schema_missing_object", "index stint_entries_lane", "not there", "CREATE INDEX stint_entries_lane on stint_entries"},
		"an index is another one": {`drop index stint_waiting_due; create index stint_waiting_due on stint_waiting (due, kind)`, report.SeverityProblem, "schema_altered", "index stint_waiting_due", "changed", "put it back"},
		"a column too many":       {`alter table stint_kinds add column owner text`, report.SeverityProblem, "schema_altered", "table stint_kinds", "changed", ""},
		"a view is gone":          {`drop view stint_jobs`, report.SeverityProblem, "schema_missing_object", "view stint_jobs", "", ""},
		"an index too many":       {`create index mine on stint_entries (kind)`, report.SeverityNote, "foreign_index", "index mine", "pays for it", "drop index mine"},
		"a trigger":               {`create trigger mine after insert on stint_entries begin select 1; end`, report.SeverityProblem, "foreign_trigger", "trigger mine", "every batch waits", "drop trigger mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := examined(t, file(t, c.change), report.Options{}, usual)
			has(t, all, c.severity, c.code, c.subject, c.problem, c.remedy)
		})
	}
	if all := examined(t, file(t, `create table mine (a); create index mine_a on mine (a)`), report.Options{}, usual); len(all) > 0 {
		t.Errorf("of the user's own tables, found is %+v", all)
	}
}

// What the remedy says is pasted, and done. Until then whatever needs the object
// is not looked at, and points there.
func TestWhatIsMissingIsMadeByPastingTheRemedy(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{
		`drop index stint_entries_lane`, `drop view stint_jobs`, `drop index stint_waiting_due; create index stint_waiting_due on stint_waiting (due, kind)`,
	} {
		path := file(t, lost)
		for _, f := range examined(t, path, report.Options{}, usual) {
			if f.Code == report.CodeNotChecked {
				if !strings.Contains(f.Remedy, "schema_missing_object") {
					t.Errorf("after %s, found is %+v", lost, f)
				}
				continue
			}
			beside(t, path, strings.TrimPrefix(f.Remedy, "put it back: "))
		}
		if all := examined(t, path, report.Options{}, usual); len(all) > 0 {
			t.Errorf("after %s and its remedy, found is %+v", lost, all)
		}
	}
}

func TestWhatIsWrongWithTheFileIsFound(t *testing.T) {
	t.Parallel()
	path := file(t, `pragma journal_mode = delete`)
	has(t, examined(t, path, report.Options{}, usual), report.SeverityWarning, "journal_mode", "the file", "its journal is delete", "sets wal")

	n := usual
	n.free = 1 << 60
	has(t, examined(t, path, report.Options{}, n), report.SeverityProblem, "disk_full", filepath.Dir(path), "MB are left", "make room")

	path = file(t, `create table big (a); insert into big values (zeroblob(4000000)); drop table big`)
	n = usual
	n.unused = 1 << 20
	has(t, examined(t, path, report.Options{}, n), report.SeverityNote, "file_half_empty", "the file", "of its", "vacuum")

	writes := open(t, path)
	enqueue(t, writes, someJobs(10))
	n.wal = 1
	has(t, examined(t, path, report.Options{}, n), report.SeverityWarning, "wal_large", "jobs.db-wal", "no checkpoint", "lsof "+path)
}

func TestAWriterThatKeepsTheFileLockedIsFound(t *testing.T) {
	t.Parallel()
	path := file(t)
	db, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(`begin immediate`); err != nil {
		t.Fatal(err)
	}
	n := usual
	n.locked = 10 * time.Millisecond
	has(t, examined(t, path, report.Options{}, n), report.SeverityWarning, "write_locked", "the file", "kept it locked", "have it end sooner")
	if err := db.Exec(`rollback`); err != nil {
		t.Fatal(err)
	}
	if all := examined(t, path, report.Options{}, n); len(all) > 0 {
		t.Errorf("when it has ended, found is %+v", all)
	}
}

func TestDamageIsFoundByADeepLook(t *testing.T) {
	t.Parallel()
	path := file(t)
	// The page of an index: what it says is no longer what its table says.
	var page int64
	s := open(t, path)
	err := s.read(t.Context(), func(c *conn) (err error) {
		page, err = oneRow(c, firstNumber[int64], `select rootpage from sqlite_schema where name = 'stint_entries_lane'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt(make([]byte, 100), page*4096-100)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	has(t, examined(t, path, report.Options{Deep: true}, usual), report.SeverityProblem, "file_damaged", "the file", "stint_entries_lane", "backup")
	if all := examined(t, path, report.Options{}, usual); slices.ContainsFunc(all, func(f report.Finding) bool { return f.Code == "file_damaged" }) {
		t.Errorf("without being asked for, found is %+v", all)
	}
}

func TestPlacesThatNobodyCanSeeAreFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	w := storetest.Join(t, s, "noop")
	if !s.Vouches(w.Info.Token, time.Now()).After(time.Now()) {
		t.Skip("this system has no such locks")
	}
	if err := os.Remove(path + placesSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	has(t, examined(t, path, report.Options{}, usual), report.SeverityProblem, "places_missing", "jobs.db-engines", "deleted it", "restart the engines")
	beside(t, path, `update stint_engines set locked = 0`)
	has(t, examined(t, path, report.Options{}, usual), report.SeverityNote, "places_unlocked", "jobs.db-engines", "1 engines", "local disk")
}

func TestWhatTheDoctorAsksReadsNoWholeTable(t *testing.T) {
	t.Parallel()
	s := open(t, Memory)
	for name, text := range map[string]string{"backlog": backlogSQL, "frontiers": frontiersSQL, "undecided": undecidedBacklogSQL, "holds": holdsSQL, "lost": lostSQL, "a job's state": jobStateSQL} {
		for line := range strings.Lines(plan(t, s, text)) {
			if strings.HasPrefix(line, "SCAN stint_entries") || strings.HasPrefix(line, "SCAN x") || strings.HasPrefix(line, "SCAN e") || strings.HasPrefix(line, "SCAN c") {
				t.Errorf("%s reads a whole table: %s", name, line)
			}
		}
	}
}
