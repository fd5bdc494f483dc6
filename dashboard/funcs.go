package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
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

// assetsHash changes with any asset.
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
		"policy":    view.RetryInWords,
		"outcome":   view.Outcome,
		"ranOn":     view.RanOn,
		"never":     view.NeverTaken,
		"unbegun":   view.Unbegun,
		"when":      view.WhenInWords,
		"lines":     lines,
		"query":     query,
		"moment":    moment,
		"since":     func(at, now time.Time) relative { return relative{at, now} },
		"took":      words.Took,
		"rough":     words.Rough,
		"count":     func(n any) string { return words.Count(whole(n)) },
		"bytes":     words.Size,
		"sparkline": sparkline,
		"counted":   func(n any, thing string) string { return words.Counted(whole(n), thing) },
		"listed":    words.Listed,
		"visible":   words.Visible,
		"json":      marked,
		"limitOf":   store.LimitOf,
		"percent":   func(p *stint.Progress) int { return view.Percent(*p) },
		"progress":  func(p *stint.Progress) string { return view.ProgressInWords(*p) },
		"leftOut":   view.LeftOut,
		"sub":       func(a, b time.Time) time.Duration { return max(0, a.Sub(b)) },
		"id":        func(id stint.ID) string { return id.String() },
		"outcomes": func() []string {
			return []string{"completed", "failed", "snoozed", "returned", "lost", "cancelled", "expired", "skipped"}
		},
		"states": func() []stint.State { return store.States },
	}
}

// relative is an instant that is shown relative to the time.
type relative struct{ At, now time.Time }

func (r relative) String() string { return words.Ago(r.At, r.now) }

// told are words, possibly with an instant among them.
type told struct {
	Before, After string
	When          *relative
}

// tell finds the relative instant in words about a job: when it ended, or is due.
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
// out. The result is escaped for a URL, and templates do not escape it again.
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

// whole is the value of a whole number of any type, or of one that is pointed to. A panic is an error of the template.
func whole(n any) int64 { return reflect.Indirect(reflect.ValueOf(n)).Int() }

// marked indents JSON and marks keys, strings, numbers, booleans and null. Numbers stay as
// they were written, however large. Text that is not JSON is shown as it is.
func marked(raw json.RawMessage) template.HTML {
	var pretty bytes.Buffer
	if json.Indent(&pretty, raw, "", "  ") != nil {
		return template.HTML(html.EscapeString(words.Visible(string(raw))))
	}
	var out strings.Builder
	span := func(class, text string) {
		out.WriteString(`<span class="` + class + `">` + html.EscapeString(words.Visible(text)) + `</span>`)
	}
	for text := pretty.String(); text != ""; {
		n := 1
		switch c := text[0]; {
		case c == '"':
			n = stringEnd(text)
			if strings.HasPrefix(text[n:], ":") {
				span("k", text[:n])
			} else {
				span("s", text[:n])
			}
		case c == 't' || c == 'f' || c == 'n':
			n = strings.IndexFunc(text+" ", func(r rune) bool { return r < 'a' || r > 'z' })
			span(map[bool]string{true: "z", false: "b"}[c == 'n'], text[:n])
		case c == '-' || '0' <= c && c <= '9':
			n = strings.IndexFunc(text+" ", func(r rune) bool { return !strings.ContainsRune("+-.eE0123456789", r) })
			span("n", text[:n])
		default:
			out.WriteByte(c) // space, or one of {}[]:,
		}
		text = text[n:]
	}
	return template.HTML(out.String())
}

// stringEnd returns where the string ends that a JSON text begins with.
func stringEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
