package schemapage

import (
	"strings"
	"testing"
)

// FuzzRead makes sure that no schema stops the reader, and that what it finds is
// in the file.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"-- What it is.\n\n-- A table.\ncreate table stint.a (\n  b int, -- what\n  check (b > 0)\n);\n", "create function stint.f() returns int language sql as $$\n  select 1\n$$;\n",
		"-- i\ncreate unique index i on a (b);\ncreate index j on a (b) -- c;\n;", "do $$\nbegin\nend\n$$;\ncreate view stint_v as\nselect 1;\n", "create table stint.a (", "create function stint.f()", "--", "create table stint.a (b int) -- c\n;",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := Read(text)
		for name := range s.Order {
			if !strings.Contains(text, name) {
				t.Errorf("%q is not there", name)
			}
		}
		for name, fn := range s.Functions {
			if !strings.Contains(text+"\n", fn.Text) {
				t.Errorf("the function %s is %q, which is not there", name, fn.Text)
			}
		}
		for name := range s.Columns {
			if _, column, ok := strings.Cut(name, "."); !ok || !strings.Contains(text, column) {
				t.Errorf("the column %q is not there", name)
			}
		}
	})
}
