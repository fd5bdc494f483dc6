package steps

import (
	"strings"
	"testing"
	"testing/fstest"
)

// FuzzRead makes sure that steps which can be read come to an installation with
// all of their texts, and that the statements of an online one are as it must be.
func FuzzRead(f *testing.F) {
	f.Add("0001.sql", "create table a ();", "0002_b.sql", "-- step: transactional, oldest 1\ndrop table a;")
	f.Add("0001_1.sql", "a;", "0002.sql", "-- step: online, oldest 2\ncreate unique index concurrently if not exists i on t (a); -- c;\ndrop index concurrently if exists j;")
	f.Add("0001.sql", "", "0003.sql", "-- step: online, oldest 1\n;")
	f.Add("0002.sql", "-- step: transactional, oldest 99999999999999999999\n;", "x.sql", "")
	f.Add("0000.sql", "-- step: online, oldest 0\n;", "0001.sql", "--")
	f.Fuzz(func(t *testing.T, name1, text1, name2, text2 string) {
		files := fstest.MapFS{}
		for name, text := range map[string]string{name1: text1, name2: text2} {
			if strings.ContainsAny(name, "/\\\x00") || name == "" || name == "." || name == ".." || strings.ContainsAny(name, "*?[") {
				return
			}
			files["schema/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
		all, err := Read(files)
		if err != nil {
			return
		}
		install := Install(all, "meta")
		for i, s := range all {
			if s.Version != i+1 || s.Oldest < 1 || s.Oldest > s.Version {
				t.Errorf("step %d is of version %d, and lets %d work on it", i+1, s.Version, s.Oldest)
			}
			if !strings.Contains(install, s.AtOnce()) || s.Version > 1 && !strings.Contains(install, s.Record("meta")) {
				t.Errorf("the installation lacks step %d: %q", s.Version, install)
			}
			for _, statement := range s.Statements() {
				if s.Online && !strings.Contains(statement, " index concurrently if ") {
					t.Errorf("an online step has %q", statement)
				}
				Builds(statement)
			}
		}
		for from := range all {
			if text, err := Print(all, "meta", from); err != nil || !strings.Contains(text, strings.TrimSpace(all[from].Text)) {
				t.Errorf("what is printed from %d lacks its step: %q, %v", from, text, err)
			}
		}
	})
}
