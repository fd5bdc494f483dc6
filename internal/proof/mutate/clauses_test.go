package mutate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGuardsAreFoundAndTakenOut(t *testing.T) {
	for _, c := range []struct {
		text  string
		wants []string // guard => the text without it, where it is not the whole text
	}{
		{"delete from q -- where x\nwhere a = '--' and (b or c)", []string{
			"where a = '--' => delete from q -- where x\nwhere (true or (a = '--')) and (b or c)",
			"where (b or c) => delete from q -- where x\nwhere a = '--' and (true or ((b or c)))",
		}},
		{"select a from q where a between 1 and 2 and b order by a for update skip locked", []string{
			"where a between 1 and 2 => select a from q where (true or (a between 1 and 2)) and b order by a for update skip locked",
			"where b => select a from q where a between 1 and 2 and (true or (b)) order by a for update skip locked",
			"skip locked => select a from q where a between 1 and 2 and b order by a for update ",
			"for update skip locked => select a from q where a between 1 and 2 and b order by a ",
		}},
		{"select 1 from a join b on a.x = b.x left join c on true where p and q or r", []string{
			"on a.x = b.x => select 1 from a join b on (true or (a.x = b.x)) left join c on true where p and q or r",
			"where p and q or r => select 1 from a join b on a.x = b.x left join c on true where (true or (p and q or r))",
			"where … or p and q => select 1 from a join b on a.x = b.x left join c on true where (false and (p and q)) or r",
			"where p => select 1 from a join b on a.x = b.x left join c on true where (true or (p)) and q or r",
			"where q => select 1 from a join b on a.x = b.x left join c on true where p and (true or (q)) or r",
			"where … or r => select 1 from a join b on a.x = b.x left join c on true where p and q or (false and (r))",
		}},
		{"insert into q values (1) on conflict (a) do update set b = excluded.b returning a", []string{
			"on conflict (a) do update set b = excluded.b => insert into q values (1)  returning a",
		}},
		{"insert into q values (1) on conflict do nothing", []string{
			"on conflict do nothing => insert into q values (1) ",
		}},
		{"if a and case when b then c end then x := 1; end if;", []string{
			"if a and case when b then c end => if (false and (a and case when b then c end)) then x := 1; end if;",
		}},
		{"continue when a or b; exit when c;", []string{
			"continue when a or b => continue when (false and (a or b)); exit when c;",
		}},
		{"lock table a, b in exclusive mode", []string{
			"lock table a, b in exclusive mode => select 1",
		}},
		{"perform pg_advisory_xact_lock(f(1));", []string{
			"pg_advisory_xact_lock(f(1)) => perform (case when false then pg_advisory_xact_lock(f(1)) end);",
		}},
		{"create table q (a int primary key check (a > 0), primary key (a)) strict, without rowid; create index i on q (a) where b;", []string{
			"primary key => create table q (a int not null check (a > 0), primary key (a)) strict; create index i on q (a) where b;",
			"check a > 0 => create table q (a int primary key check ((true or (a > 0))), primary key (a)) strict, without rowid; create index i on q (a) where b;",
			"primary key (a) => create table q (a int primary key check (a > 0), check (true)) strict; create index i on q (a) where b;",
		}},
		{"create unique index i on q (a) where b;", []string{
			"unique create unique index i on q (a) where b => create  index i on q (a) where b;",
		}},
	} {
		var got []string
		for _, found := range clausesOf(c.text) {
			got = append(got, found.text+" => "+apply(c.text, found.edits))
		}
		if diff := cmp.Diff(c.wants, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.text, diff)
		}
	}
}

// FuzzClauses makes sure that what is taken out is a part of the text, whatever
// that is, and that nothing else of it changes.
func FuzzClauses(f *testing.F) {
	for _, text := range []string{
		"select 1 where a and (b or c) for update of x skip locked", "on conflict do update set a = 1 where b", "if x then y; elsif z then",
		"create table a (b int primary key autoincrement check (c)) without rowid", "where ((", "where ))", "case where end", "'", "\"", "--", "$$", "\x00 where \x00",
		"pg_advisory_xact_lock(", "for no key update", "join a on b on c", "create unique", "lock table a", "where between and and", "filter (where a is not null)",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range clausesOf(text) {
			without := apply(text, c.edits)
			last := 0
			for _, e := range c.edits {
				if e.at < last || e.end < e.at || e.end > len(text) {
					t.Fatalf("%q of %q: an edit of %d to %d behind %d", c.text, text, e.at, e.end, last)
				}
				// What stands in front of it and behind the one before is there still.
				if !strings.Contains(without, text[last:e.at]) {
					t.Fatalf("%q of %q: %q is gone", c.text, text, text[last:e.at])
				}
				last = e.end
			}
			if without == text {
				t.Fatalf("%q of %q takes nothing out", c.text, text)
			}
		}
	})
}
