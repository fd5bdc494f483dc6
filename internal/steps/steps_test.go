package steps

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m["schema/"+pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

const (
	second = "-- step: transactional, oldest 1\nalter table t add column c text;\n"
	third  = "-- step: online, oldest 2\n-- For searches; there is no other way.\ncreate index concurrently if not exists t_c\n  on t (c) where c is not null;\ndrop index concurrently if exists t_b;\n"
)

func TestStepsAreReadInOrder(t *testing.T) {
	got, err := Read(files("0003.sql", third, "0001_2_b.sql", "b;\n", "0001_1_a.sql", "a;\n", "0002_c.sql", second))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].Text != "a;\n\nb;\n" || got[0].Online || got[0].Oldest != 1 || got[1].Online || got[1].Oldest != 1 || !got[2].Online || got[2].Oldest != 2 {
		t.Fatalf("the steps are %+v", got)
	}
	if s := got[2].Statements(); !slices.Equal(s, []string{
		"create index concurrently if not exists t_c on t (c) where c is not null", "drop index concurrently if exists t_b"}) {
		t.Errorf("the statements are %q", s)
	} else if Builds(s[0]) != "t_c" || Builds(s[1]) != "" {
		t.Errorf("they build %q and %q", Builds(s[0]), Builds(s[1]))
	}
}

func TestAnEmptyDatabaseGetsAllStepsAtOnce(t *testing.T) {
	all := Must(files("0001.sql", "a;\n", "0002.sql", second, "0003.sql", third))
	text := Install(all, "meta")
	for _, want := range []string{"a;", "add column c", "create index if not exists t_c", "set version = 2, oldest = 1 where version = 1;", "set version = 3, oldest = 2 where version = 2;"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "index concurrently") {
		t.Errorf("what is built concurrently cannot be in a transaction:\n%s", text)
	}
}

func TestPrintedStepsSayHowTheyAreRun(t *testing.T) {
	all := Must(files("0001.sql", "a;\n", "0002.sql", second, "0003.sql", third))
	for from, want := range [][]string{
		{"-- Version 1, transactional", "a;", "-- Version 2, trans", "-- Version 3, online"},
		{"-- Version 2, transactional", "lock_timeout", "add column", "where version = 1;", "-- Version 3, online"},
		{"-- Version 3, online", "know version 2 or newer", "create index concurrently if not exists", "where version = 2;"},
		{},
	} {
		text, err := Print(all, "meta", from)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			_, rest, found := strings.Cut(text, line)
			if !found {
				t.Errorf("from version %d it does not say %q in its place:\n%s", from, line, text)
			}
			text = rest
		}
		if len(want) == 0 && text != "" {
			t.Errorf("behind the last version it says %q", text)
		}
	}
	for _, from := range []int{-1, 4} {
		if _, err := Print(all, "meta", from); err == nil {
			t.Errorf("steps from version %d were printed", from)
		}
	}
}

func TestAStepThatCannotBeIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"alter table t add c text;":                                          "its first line is not",
		"-- step: sometimes, oldest 1\n":                                     "its first line is not",
		"-- step: transactional, oldest 1\nselect 1":                         "does not end with a semicolon",
		"-- step: transactional, oldest 3\n;":                                "its oldest, 3, is not between 1 and 2",
		"-- step: transactional, oldest 0\n;":                                "its oldest, 0, is not between 1 and 2",
		"-- step: online, oldest 1\ncreate index concurrently t_c on t (c);": "if not exists",
		"-- step: online, oldest 1\nalter table t add c text;":               "an online step has",
	} {
		_, err := Read(files("0001.sql", "a;\n", "0002.sql", text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "schema/0002.sql") {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
	for _, names := range [][]string{{"0002.sql"}, {"0001.sql", "0003.sql"}, {"0001.sql", "0002_a.sql", "0002_b.sql"}, {"first.sql"}} {
		var pairs []string
		for _, name := range names {
			pairs = append(pairs, name, second)
		}
		if got, err := Read(files(pairs...)); err == nil {
			t.Errorf("%v was read as %s", names, fmt.Sprint(got))
		}
	}
}
