package archive

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/stinttest"
	"github.com/stint-go/stint/store"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type order struct {
	Customer string `json:"customer"`
}

// history is a store in which 600 jobs have completed, three failed and one waits.
func history(t *testing.T) (*sqlite.Store, []stint.ID) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	must(t, err)
	t.Cleanup(func() { s.Close() })
	ship := stint.NewResultKind[order, int]("ship", stint.Retry(retry.Fixed(1, time.Millisecond)), stint.Tag("a", "b,c"))
	mux := stint.NewMux()
	stint.HandleResult(mux, ship, func(_ context.Context, job *stint.Job, in order) (int, error) {
		if in.Customer == "bad" {
			return 0, errors.New("no \"such\"\ncustomer")
		}
		return len(in.Customer), nil
	})
	w := stinttest.On(t, s, mux)
	var jobs []stint.NewJob
	for i := range 603 {
		job, err := ship.New(order{map[bool]string{true: "bad", false: "ada"}[i%200 == 7]}, stint.URN("order:"+strconv.Itoa(i)))
		must(t, err)
		jobs = append(jobs, job)
	}
	ids, err := w.Client().EnqueueMany(t.Context(), jobs)
	must(t, err)
	w.Drain(stinttest.Limit(10_000))
	_, err = ship.Enqueue(t.Context(), w.Client(), order{"later"}, stint.Delay(time.Hour))
	must(t, err)
	return s, ids
}

// failing is a history that breaks off after some calls.
type failing struct {
	store.History
	calls int
}

var errBreak = errors.New("broken off")

func (f *failing) Ended(ctx context.Context, ids []stint.ID) (map[stint.ID]*stint.JobInfo, error) {
	if f.calls--; f.calls < 0 {
		return nil, errBreak
	}
	return f.History.Ended(ctx, ids)
}

// read are the jobs of all files, as records.
func read(t *testing.T, a Archive) (all []record) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(a.Dir, "*"))
	must(t, err)
	slices.Sort(files)
	for _, name := range files {
		switch a.Format {
		case Parquet:
			rows, err := parquet.ReadFile[record](name)
			must(t, err)
			all = append(all, rows...)
		case CSV:
			f, err := os.Open(name)
			must(t, err)
			rows, err := csv.NewReader(f).ReadAll()
			must(t, errors.Join(err, f.Close()))
			if !slices.Equal(rows[0], head) {
				t.Errorf("the head of %s is %q", name, rows[0])
			}
			for _, row := range rows[1:] {
				id, err := strconv.ParseInt(row[0], 10, 64)
				must(t, err)
				r := record{ID: id, Kind: row[1], State: row[4], Args: row[13], Result: given(row[14]), Error: given(row[16]), URN: given(row[18]), Attempts: row[25]}
				must(t, json.Unmarshal([]byte(row[17]), &r.Tags))
				all = append(all, r)
			}
		default:
			text, err := os.ReadFile(name)
			must(t, err)
			for line := range strings.Lines(string(text)) {
				var job stint.JobInfo
				must(t, json.Unmarshal([]byte(line), &job))
				r, err := recordOf(&job)
				must(t, err)
				all = append(all, r)
			}
		}
	}
	return all
}

func TestEachJobIsInOneFileHoweverOftenTheWritingIsBrokenOff(t *testing.T) {
	t.Parallel()
	s, ids := history(t)
	now := time.Now()
	for _, format := range Formats {
		t.Run(string(format), func(t *testing.T) {
			a := Archive{Dir: filepath.Join(t.TempDir(), "a"), Format: format, Every: time.Minute}
			broken, files := 0, 0
			for calls := 0; ; calls++ {
				err := a.Write(t.Context(), &failing{s, calls}, now.Add(-3*time.Minute), now.Add(3*time.Minute), func(File) error { files++; return nil })
				parts, _ := filepath.Glob(filepath.Join(a.Dir, ".*"))
				if len(parts) > 0 {
					t.Fatalf("%v is left", parts)
				}
				if err == nil {
					break
				}
				if broken++; !errors.Is(err, errBreak) || broken > 10 {
					t.Fatal(err)
				}
			}
			if broken == 0 || files < 5 {
				t.Errorf("it broke off %d times and wrote %d files", broken, files)
			}
			all := read(t, a)
			var found []stint.ID
			for _, r := range all {
				found = append(found, stint.ID(r.ID))
			}
			slices.Sort(found)
			if !slices.Equal(found, ids) {
				t.Fatalf("%d jobs are in the files, want %d, each once", len(found), len(ids))
			}
			for _, r := range all {
				bad := (r.ID-int64(ids[0]))%200 == 7
				switch {
				case r.Kind != "ship" || !slices.Equal(r.Tags, []string{"a", "b,c"}) || text(r.URN) != "order:"+strconv.FormatInt(r.ID-int64(ids[0]), 10):
					t.Fatalf("job %d is %+v", r.ID, r)
				case bad && (r.State != "failed" || text(r.Error) != "no \"such\"\ncustomer" || strings.Count(r.Attempts, `"outcome"`) != 2):
					t.Fatalf("the job that failed is %+v", r)
				case !bad && (r.State != "completed" || text(r.Result) != "3" || r.Error != nil || strings.Count(r.Attempts, `"outcome"`) != 1):
					t.Fatalf("job %d is %+v", r.ID, r)
				}
			}
		})
	}
}

func TestWhatIsNotOverAndWhatIsThereIsLeftAlone(t *testing.T) {
	t.Parallel()
	s, _ := history(t)
	a := Archive{Dir: t.TempDir(), Format: NDJSON, Every: time.Hour}
	now := time.Now().UTC()
	hour := now.Truncate(time.Hour)
	write := func(to time.Time, want ...string) {
		t.Helper()
		var names []string
		must(t, a.Write(t.Context(), s, now.Add(-time.Hour), to, func(f File) error {
			names = append(names, filepath.Base(f.Name))
			return nil
		}))
		if !slices.Equal(names, want) {
			t.Errorf("it wrote %q, want %q", names, want)
		}
	}
	write(hour.Add(time.Hour-time.Nanosecond), "jobs-"+hour.Add(-time.Hour).Format("2006-01-02T1504Z")+"-1h.ndjson")
	write(hour.Add(time.Hour), "jobs-"+hour.Format("2006-01-02T1504Z")+"-1h.ndjson")
	write(hour.Add(time.Hour))

	for _, wrong := range []Archive{{a.Dir, NDJSON, 6 * time.Hour}, {a.Dir, CSV, time.Hour}, {t.TempDir(), NDJSON, 7 * time.Hour}, {t.TempDir(), NDJSON, 48 * time.Hour}, {t.TempDir(), NDJSON, 0}} {
		if err := wrong.Write(t.Context(), s, now, now, nil); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

// gone has deleted some of what it found.
type gone struct{ store.History }

func (g gone) Ended(ctx context.Context, ids []stint.ID) (map[stint.ID]*stint.JobInfo, error) {
	jobs, err := g.History.Ended(ctx, ids)
	jobs[ids[0]] = nil
	return jobs, err
}

func TestJobsThatAreDeletedMeanwhileAreCounted(t *testing.T) {
	t.Parallel()
	s, ids := history(t)
	jobs, lost := 0, 0
	now := time.Now()
	must(t, Archive{t.TempDir(), NDJSON, 24 * time.Hour}.Write(t.Context(), gone{s}, now.Add(-time.Hour), now.Add(48*time.Hour), func(f File) error {
		jobs, lost = jobs+f.Jobs, lost+f.Gone
		return nil
	}))
	if lost != 2 || jobs != len(ids)-2 { // one of each part
		t.Errorf("%d jobs were written and %d gone", jobs, lost)
	}
}
