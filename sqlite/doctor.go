package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.Examiner = (*Store)(nil)

// norms say from when on what is normal for a while is worth a word.
type norms struct {
	locked   time.Duration // by one writer
	wal      int64         // bytes; a checkpoint begins at 16 MB
	free     int64         // bytes left on the disk
	unused   int64         // bytes of the file that nothing is in
	look     time.Duration // one question
	problems int           // of those that a check of the pages lists
}

var usual = norms{locked: 2 * time.Second, wal: 256 << 20, free: 256 << 20, unused: 1 << 30, look: 5 * time.Second, problems: 20}

// examination is one run of Examine.
type examination struct {
	*Store
	normal norms
	deep   bool
	signs  stint.Signs
}

// question is one thing to look at; its failure costs its own answer only.
type question struct {
	about  string
	tables bool // it reads stint's tables, which must be there in this version
	long   bool // it may take as long as the file is large
	ask    func(x *examination, ctx context.Context) error
}

var questions = []question{
	{"the file", false, false, (*examination).file},
	{"who writes", false, false, (*examination).writes},
	{"the pages of the file", false, true, (*examination).pages},
	{"the objects of the schema", true, false, (*examination).drift},
	{"places of engines", true, false, (*examination).standing},
	{"what is ready", true, false, (*examination).ready},
	{"what is undecided", true, false, (*examination).undecided},
	{"what silent engines hold", true, false, (*examination).holds},
}

// Examine implements [stint.Examiner].
func (s *Store) Examine(ctx context.Context, e stint.Examination) (stint.Signs, error) {
	return s.examine(ctx, e, usual)
}

func (s *Store) examine(ctx context.Context, e stint.Examination, n norms) (stint.Signs, error) {
	x := &examination{Store: s, normal: n, deep: e.Deep}
	info, _ := s.Schema(ctx) // whoever cannot read it says so
	for _, q := range questions {
		if q.tables && info.Installed == 0 || info.Installed != info.Known {
			continue
		}
		if err := x.put(ctx, q); err != nil {
			x.notLookedAt(q.about, err)
		}
		if ctx.Err() != nil {
			return x.signs, ctx.Err()
		}
	}
	return x.signs, nil
}

// put asks one question.
func (x *examination) put(ctx context.Context, q question) error {
	if !q.long {
		limited, cancel := context.WithTimeout(ctx, x.normal.look)
		defer cancel()
		ctx = limited
	}
	return q.ask(x, ctx)
}

func (x *examination) find(f stint.Finding) { x.signs.Findings = append(x.signs.Findings, f) }

func (x *examination) notLookedAt(about string, err error) {
	f := stint.Finding{
		Severity: stint.SeverityWarning, Code: stint.CodeNotLookedAt, Subject: about,
		Problem: "it could not be looked at: " + err.Error(), Remedy: x.Advise(err),
	}
	if errors.Is(err, context.DeadlineExceeded) {
		f.Problem = fmt.Sprintf("it took longer than %v to look at", x.normal.look)
	}
	x.find(f)
}

// Advise implements [stint.Adviser].
func (s *Store) Advise(err error) string {
	for _, missing := range []string{"no such index", "no such table", "no such column"} {
		if err != nil && strings.Contains(err.Error(), missing) {
			return "create what is missing, which the findings schema_missing_object name, and look again"
		}
	}
	return "see whether the file can be read, and look again"
}

// number reads one number.
func (c *conn) number(text string, args ...any) (n int64, err error) {
	err = c.query(text, args, func(q *stmt) error { n = q.ColumnInt64(0); return nil })
	return n, err
}
