package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-go/stint/report"
)

var _ report.Checker = (*Store)(nil)

// norms say from when on what is normal for a while is worth a word.
type norms struct {
	locked   time.Duration // by one writer
	wal      int64         // bytes; a checkpoint begins at 16 MB
	free     int64         // bytes left on the disk
	unused   int64         // bytes of the file that nothing is in
	look     time.Duration // one question
	problems int           // of those that a check of the pages lists
}

var problem, warning, note = report.SeverityProblem.Rule, report.SeverityWarning.Rule, report.SeverityNote.Rule

var usual = norms{locked: 2 * time.Second, wal: 256 << 20, free: 256 << 20, unused: 1 << 30, look: 5 * time.Second, problems: 20}

// examination is one run of Examine.
type examination struct {
	*Store
	normal norms
	deep   bool
	signs  report.Facts
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

// Examine implements [report.Checker].
func (s *Store) Examine(ctx context.Context, e report.Options) (report.Facts, error) {
	return s.examine(ctx, e, usual)
}

func (s *Store) examine(ctx context.Context, e report.Options, n norms) (report.Facts, error) {
	x := &examination{Store: s, normal: n, deep: e.Deep}
	info, _ := s.Schema(ctx) // a schema that cannot be read is a finding elsewhere
	for _, q := range questions {
		if q.tables && info.Installed != info.Known {
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

func (x *examination) find(rule report.Rule, subject string, figures map[string]any) {
	x.signs.Findings = append(x.signs.Findings, rule.With("path", x.path).Find(subject, figures))
}

func (x *examination) notLookedAt(about string, err error) {
	why := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		why = fmt.Sprintf("it took longer than %v", x.normal.look)
	}
	x.signs.Findings = append(x.signs.Findings, report.NotChecked(about, why, x.Advise(err)))
}

// Advise implements [report.Hinter].
func (s *Store) Advise(err error) string {
	for _, missing := range []string{"no such index", "no such table", "no such column"} {
		if err != nil && strings.Contains(err.Error(), missing) {
			return "create what is missing, which the findings schema_missing_object name, and look again"
		}
	}
	return "see whether the file can be read, and look again"
}
