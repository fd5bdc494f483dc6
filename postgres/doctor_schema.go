package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stint-go/stint/report"
)

// objectsSQL lists what is in the schema, each object with its definition in a
// text that is the same on every major version of PostgreSQL and in a schema of
// any name. So it is put together from the catalogues: the server's own text of a
// view changes from version to version, and only what stands between its words
// is taken of it. The search path is the schema.
//
// The bodies of functions and views are replaced by a hash of them; $1 and $2
// are how the schema stands in the text of functions, before a dot and as a channel.
const objectsSQL = `
with here as (select oid from pg_namespace where nspname = current_schema()),
rel as (select c.* from pg_class c, here where c.relnamespace = here.oid)
select 'table' as kind, c.relname::text as name,
       case c.relpersistence when 'p' then 'logged' when 'u' then 'unlogged' else 'temporary' end ||
       case when c.relkind = 'p' then ', partitioned' else '' end
from rel c where c.relkind in ('r', 'p', 'f', 'm')
union all
select 'column', c.relname || '.' || a.attname,
       format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end ||
       coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') ||
       case when a.attcollation <> t.typcollation then ' collate ' || (select l.collname from pg_collation l where l.oid = a.attcollation) else '' end ||
       case when a.attstorage <> t.typstorage then ' storage ' || a.attstorage::text else '' end
from rel c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relkind in ('r', 'v')
union all
select 'constraint', c.relname || '.' || k.conname, pg_get_constraintdef(k.oid)
from rel c join pg_constraint k on k.conrelid = c.oid where k.contype <> 'n' -- not null is said of the column
union all
select 'domain', t.typname, concat_ws(' ', format_type(t.typbasetype, t.typtypmod), case when t.typnotnull then 'not null' end, 'default ' || t.typdefault,
       (select string_agg(pg_get_constraintdef(k.oid), ' ' order by k.conname) from pg_constraint k where k.contypid = t.oid and k.contype = 'c'))
from pg_type t join here on t.typnamespace = here.oid where t.typtype = 'd'
union all
select 'index', i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid, 0, true)
from rel c join pg_index i on i.indrelid = c.oid where c.relkind = 'r'
union all
select 'sequence', c.relname, format_type(s.seqtypid, null) || ' from ' || s.seqstart || ' by ' || s.seqincrement || ' to ' || s.seqmax ||
       case when s.seqcycle then ' cycle' else '' end
from rel c join pg_sequence s on s.seqrelid = c.oid
union all
select 'view', c.relname, md5(regexp_replace(regexp_replace(lower(pg_get_viewdef(c.oid)), '("[^"]+"|[a-z_][a-z0-9_]*)\.', '', 'g'), '[\s()]', '', 'g'))
from rel c where c.relkind = 'v'
union all
select 'function', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
       concat_ws(' ', 'returns', pg_get_function_result(p.oid), l.lanname,
         case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
         case when p.proisstrict then 'strict' end, case when p.prosecdef then 'security definer' end,
         case p.proparallel when 's' then 'parallel safe' when 'r' then 'parallel restricted' end,
         'set ' || regexp_replace(array_to_string(p.proconfig, ', '), '"([a-z_]+)"', '\1', 'g'), -- quoted where quote_all_identifiers was on
         'arguments ' || md5(pg_get_function_arguments(p.oid)),
         'body ' || md5(replace(replace(p.prosrc, $1, 'stint.'), $2, 'pg_notify(''stint''')))
from pg_proc p join here on p.pronamespace = here.oid join pg_language l on l.oid = p.prolang
union all
select 'trigger', c.relname || '.' || t.tgname, 'trigger'
from rel c join pg_trigger t on t.tgrelid = c.oid where not t.tgisinternal
union all
select 'rule', c.relname || '.' || r.rulename, 'rule'
from rel c join pg_rewrite r on r.ev_class = c.oid where c.relkind = 'r'
union all
select 'row-level security', c.relname, 'on' from rel c where c.relrowsecurity`

// manifest is what a fresh installation has, as objectsSQL tells it. A test
// keeps it true, on each major version that it runs on: make schema-page writes
// it again after the schema was edited.
//
//go:embed schema/objects.txt
var manifest string

// object is something in the schema.
type object struct{ Kind, Name, Definition string }

func (o object) subject() string { return o.Kind + " " + o.Name }

// line is how the manifest has it.
func (o object) line() string { return o.Kind + "\t" + o.Name + "\t" + o.Definition + "\n" }

// wanted reads the manifest.
func wanted() map[string]object {
	all := map[string]object{}
	for line := range strings.Lines(manifest) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(parts) == 3 {
			o := object{parts[0], parts[1], parts[2]}
			all[o.subject()] = o
		}
	}
	return all
}

// objects lists what is there, in the order of the manifest. The transaction's search path is the schema.
func (s *Store) objects(ctx context.Context, tx pgx.Tx) ([]object, error) {
	all, err := ask[object](ctx, tx, objectsSQL, s.sql.schema+".", "pg_notify('"+s.sql.channel+"'")
	for i := range all {
		all[i].Definition = strings.Join(strings.Fields(all[i].Definition), " ") // some are many lines
	}
	slices.SortFunc(all, func(a, b object) int { return strings.Compare(a.line(), b.line()) })
	return all, err
}

// soundFor is how long a schema that was as it should be is believed to be so:
// comparing it takes longer than all the other questions together.
const soundFor = time.Minute

// drift looks whether the schema is the one that this program installs.
func (x *examination) drift(ctx context.Context, tx pgx.Tx) error {
	if at := x.sound.Load(); x.recent && at != nil && time.Since(*at) < soundFor {
		return nil
	}
	x.sound.Store(nil)
	before := len(x.signs.Findings)
	if err := x.compare(ctx, tx); err != nil {
		return err
	}
	if len(x.signs.Findings) == before {
		x.sound.Store(new(time.Now()))
	}
	return nil
}

var (
	altered = problem("schema_altered", "it is {found}; this program installs {wanted}", "put it back: {make}")
	missing = problem("schema_missing_object", "it is not there, or not where this program installs it", "{make}")
	foreign = note("schema_foreign", "it is nothing that stint knows, and goes when stint's schema is removed", "put what is yours into a schema of your own")

	// What others put on stint's objects, by its kind.
	onOurs       = "it is not stint's: it runs within what stint writes, can refuse or change that, and every batch waits for it"
	foreignKinds = map[string]report.Rule{
		"index":      note("foreign_index", "it is not stint's: each job that is written pays for it", "if nobody needs it: drop index {schema}.{name}"),
		"trigger":    problem("foreign_trigger", onOurs, "drop trigger {name} on {schema}.{table}; listen to events, or read the view jobs, instead"),
		"rule":       problem("foreign_rule", onOurs, "drop rule {name} on {schema}.{table}; listen to events, or read the view jobs, instead"),
		"constraint": problem("foreign_constraint", onOurs, "alter table {schema}.{table} drop constraint {name}"),
		"column":     warning("schema_foreign", "it is not stint's: a restored copy or the next version may not have it", foreign.Remedy),
		"row-level security": problem("row_security", "roles that do not own the table see or write some of its rows only, so jobs would seem not to be there",
			"alter table {schema}.{name} disable row level security"),
	}

	// A build that failed leaves an index that costs every write and answers nothing.
	invalid = question{rule: problem("index_invalid", "it was not built to its end: no query uses it, so some read whole tables instead",
		"reindex index concurrently {schema}.{name}"), sql: `
		select 'index ' || i.indexrelid::regclass as subject, i.indexrelid::regclass::text as name
		from pg_index i join pg_class c on c.oid = i.indrelid
		where c.relnamespace = @schema::regnamespace and not (i.indisvalid and i.indisready) order by 1`}

	owners = question{rule: warning("owners_differ", "its objects belong to several roles ({owners}): migrations need all of them to belong to the one that runs them",
		"reassign them to one: alter table {schema}.… owner to …"), sql: `
		select 'schema ' || @name as subject, string_agg(distinct o.name, ', ' order by o.name) as owners
		from pg_class c cross join pg_get_userbyid(c.relowner) o(name)
		where c.relnamespace = @schema::regnamespace and c.relkind in ('r', 'v', 'S')
		having count(distinct o.name) > 1`}
)

// compare finds what is not as this program installs it.
func (x *examination) compare(ctx context.Context, tx pgx.Tx) error {
	all, err := x.objects(ctx, tx)
	if err != nil {
		return err
	}
	want := wanted()
	for _, o := range all {
		w, ours := want[o.subject()]
		delete(want, o.subject())
		switch {
		case !ours:
			rule, is := foreignKinds[o.Kind]
			if !is {
				rule = foreign
			}
			table, name, of := strings.Cut(o.Name, ".")
			if !of {
				name = table
			}
			x.find(rule.With("schema", x.sql.schema, "table", table, "name", name).Find(o.subject(), map[string]any{"found": o.Definition}))
		case o.Definition != w.Definition:
			rule := altered
			if o.Kind == "function" || o.Kind == "view" {
				rule.Problem = "somebody replaced it: it is not what this program installs"
			}
			x.find(rule.With("make", x.make(w, all)).Find(o.subject(), map[string]any{"found": o.Definition, "wanted": w.Definition}))
		}
	}
	for _, w := range want {
		x.find(missing.With("make", x.make(w, all)).Find(w.subject(), map[string]any{"wanted": x.qualified(w)}))
	}
	if err := x.rows(ctx, tx, invalid); err != nil {
		return err
	}
	return x.rows(ctx, tx, owners)
}

// qualified is the definition of an object as it is to be pasted: that of an
// index says on which table, of which schema.
func (x *examination) qualified(o object) string {
	before, after, is := strings.Cut(o.Definition, " ON ")
	if o.Kind != "index" || !is {
		return o.Definition
	}
	return before + " ON " + x.sql.schema + "." + after
}

// make is how an object comes to be what this program installs: a command to
// paste, or where to find one. What is there in its place is taken away first.
func (x *examination) make(w object, there []object) string {
	table, name, _ := strings.Cut(w.Name, ".")
	replaced := slices.ContainsFunc(there, func(o object) bool { return o.subject() == w.subject() })
	switch w.Kind {
	case "index":
		for _, o := range wanted() {
			if t, constraint, _ := strings.Cut(o.Name, "."); o.Kind == "constraint" && constraint == w.Name {
				return fmt.Sprintf("it comes with its constraint: alter table %s.%s add constraint %s %s", x.sql.schema, t, constraint, o.Definition)
			}
		}
		text := x.qualified(w)
		if replaced {
			return fmt.Sprintf("drop index %s.%s; %s", x.sql.schema, w.Name, text)
		}
		return strings.Replace(text, " INDEX ", " INDEX CONCURRENTLY ", 1) // work goes on meanwhile
	case "constraint":
		text := "alter table " + x.sql.schema + "." + table
		if replaced {
			text += " drop constraint " + name + ","
		}
		return text + " add constraint " + name + " " + w.Definition
	case "function", "view":
		called, _, _ := strings.Cut(w.Name, "(")
		text := fmt.Sprintf("run the statement that begins with create %s %s in what stint migrate print --schema %s prints", w.Kind, x.sql.in("stint."+called), x.schema)
		if replaced {
			text += ", with create or replace"
		}
		return text + "; if it uses roles, then what stint migrate roles prints"
	case "domain":
		if replaced {
			return fmt.Sprintf("alter it: compare with create domain %s in what stint migrate print --schema %s prints", x.sql.in("stint."+w.Name), x.schema)
		}
	case "column":
		return fmt.Sprintf("compare with create table %s in what stint migrate print --schema %s prints", x.sql.in("stint."+table), x.schema)
	}
	return fmt.Sprintf("run the statement that begins with create %s %s in what stint migrate print --schema %s prints", w.Kind, x.sql.in("stint."+w.Name), x.schema)
}
