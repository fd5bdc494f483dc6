package sqlite

import (
	"context"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/steps"
)

// object is something in the schema, with the text that made it.
type object struct{ kind, name, table, text string }

func (o object) subject() string { return o.kind + " " + o.name }

// make is how an object comes to be what this program installs: a command to
// paste, but for a table, which has rows.
func (o object) make(replaced bool) string {
	switch {
	case o.kind == "table" || strings.Contains(o.text, "--"): // a comment would swallow the rest of the line
		return "compare with create " + o.kind + " " + o.name + " in what stint migrate print prints"
	case replaced:
		return "drop " + o.kind + " " + o.name + "; " + o.text
	}
	return o.text
}

// objectsSQL leaves out what SQLite makes by itself for keys.
const objectsSQL = `select type, name, tbl_name, sql from sqlite_schema where sql is not null and name not like 'sqlite\_%' escape '\' order by type, name`

// objects lists what is in a database. Where a text breaks its lines is no
// difference.
func (c *conn) objects() ([]object, error) {
	var all []object
	err := c.query(objectsSQL, nil, func(q *stmt) error {
		all = append(all, object{q.ColumnText(0), q.ColumnText(1), q.ColumnText(2), strings.Join(strings.Fields(q.ColumnText(3)), " ")})
		return nil
	})
	return all, err
}

// fresh lists what a new installation has: one is made in memory.
func (s *Store) fresh() ([]object, error) {
	db, err := sqlite3.Open(Memory)
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, named: s.named, stmts: map[statement]*stmt{}}
	defer c.close()
	if err := db.Exec(s.named(steps.Install(s.steps, metaTable))); err != nil {
		return nil, err
	}
	return c.objects()
}

// drift compares the schema with the one that this program installs. What is
// in the file beside it is the user's, but for what hangs on stint's tables.
func (x *examination) drift(ctx context.Context) error {
	fresh, err := x.fresh()
	if err != nil {
		return err
	}
	want, tables := map[string]object{}, map[string]bool{}
	for _, o := range fresh {
		want[o.subject()] = o
		tables[o.table] = true
	}
	var all []object
	if err := x.read(ctx, func(c *conn) (err error) { all, err = c.objects(); return err }); err != nil {
		return err
	}
	for _, o := range all {
		w, ours := want[o.subject()]
		delete(want, o.subject())
		switch {
		case ours && o.text != w.text:
			x.find(stint.Finding{
				Severity: stint.SeverityProblem, Code: "schema_altered", Subject: o.subject(),
				Problem: "somebody changed it: it is not what this program installs", Remedy: "put it back: " + w.make(true),
				Figures: map[string]any{"found": o.text, "wanted": w.text},
			})
		case !ours && tables[o.table] && o.kind == "index":
			x.find(stint.Finding{
				Severity: stint.SeverityNote, Code: "foreign_index", Subject: o.subject(),
				Problem: "it is not stint's: each job that is written pays for it", Remedy: "if nobody needs it: drop index " + o.name,
				Figures: map[string]any{"found": o.text},
			})
		case !ours && tables[o.table] && o.kind == "trigger":
			x.find(stint.Finding{
				Severity: stint.SeverityProblem, Code: "foreign_trigger", Subject: o.subject(),
				Problem: "it is not stint's: it runs within what stint writes, can refuse or change that, and every batch waits for it",
				Remedy:  "drop trigger " + o.name + "; listen to events, or read the view, instead",
				Figures: map[string]any{"found": o.text},
			})
		}
	}
	for _, w := range want {
		x.find(stint.Finding{
			Severity: stint.SeverityProblem, Code: "schema_missing_object", Subject: w.subject(),
			Problem: "it is not there", Remedy: w.make(false), Figures: map[string]any{"wanted": w.text},
		})
	}
	return nil
}
