package sqlite

import (
	"context"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/report"
)

// object is something in the schema, with the text that made it.
type object struct{ kind, name, table, text string }

func (o object) subject() string { return o.kind + " " + o.name }

// make says how to make an object what this program installs: a command to
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

var (
	altered = problem("schema_altered", "somebody changed it: it is not what this program installs", "put it back: {make}")
	missing = problem("schema_missing_object", "it is not there", "{make}")

	// What others put on stint's tables, by its kind.
	foreignKinds = map[string]report.Rule{
		"index": note("foreign_index", "it is not stint's: each job that is written pays for it", "if nobody needs it: drop {subject}"),
		"trigger": problem("foreign_trigger", "it is not stint's: it runs within what stint writes, can refuse or change that, and every batch waits for it",
			"drop {subject}; listen to events, or read the view, instead"),
	}
)

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
		if rule, is := foreignKinds[o.kind]; is && !ours && tables[o.table] {
			x.find(rule, o.subject(), map[string]any{"found": o.text})
		}
		if ours && o.text != w.text {
			x.find(altered.With("make", w.make(true)), o.subject(), map[string]any{"found": o.text, "wanted": w.text})
		}
	}
	for _, w := range want {
		x.find(missing.With("make", w.make(false)), w.subject(), map[string]any{"wanted": w.text})
	}
	return nil
}
