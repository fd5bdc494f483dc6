package schemapage

import (
	"context"
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
)

var update = flag.Bool("update", false, "write the page anew")

const (
	page  = "../../../docs/schema.md"
	intro = `# The schema

<!-- Written by make schema-page from the installed schemas and the comments of their files: do not edit. -->

What is in the database: tables, views and functions, with what each is for. How they work together is told in [design/storage.md](design/storage.md), and who may do what
in [postgresql-roles.md](postgresql-roles.md). People and programs in other languages read the views and call the functions that are for them; everything else may change with any
version. Names are those of the default schema, ` + "`stint`" + `, and the default prefix, ` + "`stint_`" + `.
`
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTheSchemaPageIsWhatIsInstalled(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, server *pgtest.Server) {
		got, missing := Page(intro, ofPostgres(t, server), ofSQLite(t))
		for _, what := range missing {
			t.Error(what)
		}
		if *update {
			must(t, os.WriteFile(page, []byte(got), 0o644))
			return
		}
		want, err := os.ReadFile(page)
		must(t, err)
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("docs/schema.md is not what is installed; run make schema-page (- there, + installed):\n%s", diff)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// texts are files by their names.
func texts(t *testing.T, pattern string) (names, all []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		must(t, err)
		names, all = append(names, filepath.Base(file)), append(all, string(text))
	}
	if len(all) == 0 {
		t.Fatalf("there are no files %s", pattern)
	}
	return names, all
}

// writers are functions and files of the program.
func writers(t *testing.T, s *Source, pattern string) []Writer {
	var all []Writer
	for name, f := range s.Functions {
		all = append(all, Writer{name, f.Text})
	}
	slices.SortFunc(all, func(a, b Writer) int { return strings.Compare(a.Name, b.Name) })
	names, texts := texts(t, pattern)
	for i, name := range names {
		all = append(all, Writer{name, texts[i]})
	}
	return all
}

func ofPostgres(t *testing.T, server *pgtest.Server) *Schema {
	url := server.New(t)
	store, err := postgres.Open(t.Context(), url)
	must(t, err)
	store.Close()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(context.Background())
	_, files := texts(t, "../../../postgres/schema/*.sql")
	s := &Schema{Name: "PostgreSQL", Prefix: "stint.", Source: Read(files...)}
	s.Writers = writers(t, s.Source, "../../../postgres/*.go")
	s.Tables, s.Seqs, s.Views = rows[Table](t, conn, tablesSQL, "r"), rows[Table](t, conn, tablesSQL, "S"), rows[Table](t, conn, tablesSQL, "v")
	for _, list := range [][]Table{s.Tables, s.Views} {
		for i := range list {
			name := list[i].Name
			list[i].Columns = rows[Column](t, conn, columnsSQL, name)
			list[i].Keys = values(t, conn, keysSQL, name)
			list[i].Checks = values(t, conn, checksSQL, name)
			list[i].Indexes = rows[Index](t, conn, indexesSQL, name)
		}
	}
	s.Public, s.Others = rows[Routine](t, conn, functionsSQL, true), rows[Routine](t, conn, functionsSQL, false)
	return s
}

// Names are ordered by bytes: each server has a collation of its own.
const (
	tablesSQL  = `select c.relname as name from pg_class c where c.relnamespace = 'stint'::regnamespace and c.relkind = $1::"char" order by c.relname collate "C"`
	columnsSQL = `
		select a.attname as name, format_type(coalesce(nullif(t.typbasetype, 0), t.oid), a.atttypmod) as type, case when a.attnotnull then '' else 'yes' end as "null",
		       coalesce(pg_get_expr(d.adbin, d.adrelid), '') as default, coalesce(col_description(a.attrelid, a.attnum), '') as meaning
		from pg_attribute a join pg_type t on t.oid = a.atttypid left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
		where a.attrelid = ('stint.' || $1)::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`
	keysSQL = `
		select lower(pg_get_constraintdef(c.oid)) from pg_constraint c
		where c.conrelid = ('stint.' || $1)::regclass and c.contype in ('p', 'u', 'f') order by c.contype, c.conname collate "C"`
	// What a domain asks of its values is asked of the column.
	checksSQL = `
		select holds from (
		  select pg_get_expr(c.conbin, c.conrelid) as holds, c.conname::text as name from pg_constraint c
		  where c.conrelid = ('stint.' || $1)::regclass and c.contype = 'c'
		  union all
		  select replace(pg_get_expr(c.conbin, 0), 'VALUE', a.attname), a.attname from pg_constraint c join pg_attribute a on a.atttypid = c.contypid
		  where a.attrelid = ('stint.' || $1)::regclass and a.attnum > 0 and c.contype = 'c') c
		order by name collate "C"`
	indexesSQL = `
		select c.relname as name, regexp_replace(pg_get_indexdef(c.oid), '^.* USING (btree )?', '') as on
		from pg_index i join pg_class c on c.oid = i.indexrelid
		where i.indrelid = ('stint.' || $1)::regclass and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
		order by c.relname collate "C"`
	// A function is for people when the catalogue says what it is for.
	functionsSQL = `
		select p.proname as name, 'stint.' || p.proname || '(' || replace(pg_get_function_arguments(p.oid), ', ', e',\n  ') || ')' as signature, pg_get_function_result(p.oid) as returns
		from pg_proc p where p.pronamespace = 'stint'::regnamespace and (obj_description(p.oid, 'pg_proc') is not null) = $1 order by p.proname collate "C"`
)

func rows[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) []T {
	t.Helper()
	r, _ := conn.Query(t.Context(), query, args...)
	list, err := pgx.CollectRows(r, pgx.RowToStructByNameLax[T])
	must(t, err)
	return list
}

func values(t *testing.T, conn *pgx.Conn, query string, args ...any) []string {
	t.Helper()
	r, _ := conn.Query(t.Context(), query, args...)
	list, err := pgx.CollectRows(r, pgx.RowTo[string])
	must(t, err)
	return list
}

func ofSQLite(t *testing.T) *Schema {
	path := filepath.Join(t.TempDir(), "page.db")
	store, err := sqlite.Open(t.Context(), path)
	must(t, err)
	must(t, store.Close())
	db, err := sql.Open("sqlite3", path)
	must(t, err)
	defer db.Close()
	_, files := texts(t, "../../../sqlite/schema/*.sql")
	s := &Schema{Name: "SQLite", Prefix: "stint_", Source: Read(files...)}
	s.Writers = writers(t, s.Source, "../../../sqlite/*.go")
	read := func(query string, arg string, scan func(row func(...any) error) error) {
		t.Helper()
		rows, err := db.Query(query, arg)
		must(t, err)
		defer rows.Close()
		for rows.Next() {
			must(t, scan(rows.Scan))
		}
		must(t, rows.Err())
	}
	for kind, into := range map[string]*[]Table{"table": &s.Tables, "view": &s.Views} {
		read(`select substr(name, 7) from sqlite_schema where type = ? and name like 'stint\_%' escape '\' order by name`, kind, func(row func(...any) error) error {
			var table Table
			err := row(&table.Name)
			*into = append(*into, table)
			return err
		})
		for i := range *into {
			table := &(*into)[i]
			var key []string
			read(`select name, type, "notnull", coalesce(dflt_value, ''), pk from pragma_table_xinfo(?) order by cid`, "stint_"+table.Name, func(row func(...any) error) error {
				var c Column
				var notNull, pk int
				err := row(&c.Name, &c.Type, &notNull, &c.Default, &pk)
				if c.Type = strings.ToLower(c.Type); notNull == 0 && pk == 0 {
					c.Null = "yes"
				}
				if pk > 0 {
					key = append(key, c.Name)
				}
				table.Columns = append(table.Columns, c)
				return err
			})
			if len(key) > 0 {
				table.Keys = []string{"primary key (" + strings.Join(key, ", ") + ")"}
			}
			read(`select name, substr(sql, instr(sql, '(')) from sqlite_schema where type = 'index' and sql is not null and tbl_name = ? order by name`, "stint_"+table.Name, func(row func(...any) error) error {
				var i Index
				err := row(&i.Name, &i.On)
				i.Name = strings.TrimPrefix(i.Name, "stint_")
				table.Indexes = append(table.Indexes, i)
				return err
			})
		}
	}
	return s
}

func TestWhatIsNotExplainedIsNamed(t *testing.T) {
	s := &Schema{Name: "X", Prefix: "x.", Tables: []Table{{Name: "t", Columns: []Column{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Indexes: []Index{{Name: "i"}, {Name: "j"}}}},
		Views: []Table{{Name: "v", Columns: []Column{{Name: "d"}}}}, Public: []Routine{{Name: "f"}}, Others: []Routine{{Name: "g"}},
		Source: Read(`-- Some text.

-- What t is.
create table stint.t (
  -- What a
  a integer, -- is.
  b text,
  check (a > 0), -- not b
  c text    -- What c
            -- is.
);
-- Why i is.
create index i on stint.t (a);

create index j on stint.t (b);
-- What g does.
create function stint.g() returns void language sql as $$
  -- not this
  update x.t set a = 1;
$$;
create function stint.f() returns void language sql as $$ delete from x.t $$;
`)}
	for name, f := range s.Source.Functions {
		s.Writers = append(s.Writers, Writer{name, f.Text})
	}
	page, missing := Page("# X\n", s)
	if diff := cmp.Diff([]string{"X: column t.b is not explained", "X: index j is not explained", "X: view v is not explained",
		"X: column v.d is not explained", "X: function f is not explained"}, missing); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"\nSome text.\n", "| What a is. |", "| What c is. |", "| Why i is. |", "- Updated by `g`", "- Deleted by `f`", "| `g` | What g does. |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}
