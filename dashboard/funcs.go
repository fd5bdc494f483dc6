package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// assetsHash is another one when an asset is another one.
var assetsHash = func() string {
	sum := sha256.New()
	_ = fs.WalkDir(files, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			text, _ := files.ReadFile(name) // it is embedded
			fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		}
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6])
}()

// functions are those of the templates. Path is where the dashboard is mounted.
func functions(path string) template.FuncMap {
	return template.FuncMap{
		"link":    func(to string) string { return path + to },
		"asset":   func(name string) string { return path + "/assets/" + assetsHash + "/" + name },
		"segment": ops.Segment,
		"rows": func(jobs []stint.JobInfo, crew view.Crew, now time.Time, tick bool) jobList {
			return jobList{jobs, crew, now, tick}
		},
		"situation": func(crew view.Crew, j stint.JobInfo, now time.Time) told {
			return tell(crew.Situation(j, now), j, now)
		},
		"outcome": view.Outcome,
		"ranOn":   view.RanOn,
		"never":   view.NeverTaken,
		"when":    view.WhenInWords,
		"lines":   lines,
		"query":   query,
		"moment":  moment,
		"since":   func(at, now time.Time) relative { return relative{at, now} },
		"took":    words.Took,
		"rough":   words.Rough,
		"count":   count,
		"bytes":   words.Size,
		"counted": counted,
		"listed":  words.Listed,
		"visible": words.Visible,
		"json":    marked,
		"sub":     func(a, b time.Time) time.Duration { return max(0, a.Sub(b)) },
		"id":      func(id stint.ID) string { return id.String() },
		"outcomes": func() []string {
			return []string{"completed", "failed", "snoozed", "returned", "lost", "cancelled", "expired"}
		},
		"states": func() []stint.State { return store.States },
	}
}

// relative is an instant that is told by how far away it is.
type relative struct{ At, now time.Time }

func (r relative) String() string { return words.Ago(r.At, r.now) }

// told are words with an instant among them, if there is one.
type told struct {
	Before, After string
	When          *relative
}

// tell finds in words about a job the instant that they tell by how far away it
// is: when it ended, or is due.
func tell(words string, j stint.JobInfo, now time.Time) told {
	when := relative{j.Due, now}
	if j.State.Final() {
		when.At = j.Finished
	}
	before, after, found := strings.Cut(words, when.String())
	if !found || when.At.IsZero() {
		return told{Before: words}
	}
	return told{before, after, &when}
}

// jobList is what the rows of a table of jobs are made of.
type jobList struct {
	Jobs []stint.JobInfo
	Crew view.Crew
	Now  time.Time
	Tick bool // whether each can be ticked
}

// query makes a query of names and values in turn; those without a value are left
// out. What it returns is escaped for a URL, and templates leave it so.
func query(pairs ...any) (template.URL, error) {
	if len(pairs)%2 != 0 {
		return "", fmt.Errorf("a query has a value for each name")
	}
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		value := reflect.Indirect(reflect.ValueOf(pairs[i+1])) // what may be missing is behind a pointer
		if text := fmt.Sprint(value); value.IsValid() && text != "" {
			q.Set(fmt.Sprint(pairs[i]), text)
		}
	}
	return template.URL(q.Encode()), nil
}

// moment is an instant for a <time>, to the microsecond that stores keep.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// count groups the digits of any whole number.
func count(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return words.Count(n), nil
	case int64:
		return words.Count(n), nil
	}
	return "", fmt.Errorf("%T is no number that is counted", n)
}

func counted(n any, thing string) (string, error) {
	switch n := n.(type) {
	case int:
		return words.Counted(n, thing), nil
	case int64:
		return words.Counted(n, thing), nil
	}
	return "", fmt.Errorf("%T is no number that is counted", n)
}
