package pgtest

import "testing"

func TestADumpHasWhatWasThereWhenItBegan(t *testing.T) {
	major := WithPrograms(t, "pg_dump", "pg_restore").Major
	old, fresh := Start(t, Options{Major: major}), Start(t, Options{Major: major})
	url := old.New(t)
	execute(t, url, "create table kept as select 'here' as word")
	path := old.Dump(value(t, url, "select current_database()"))
	execute(t, url, "insert into kept values ('too late')")
	restored := fresh.New(t)
	fresh.Restore(path, value(t, restored, "select current_database()"))
	if got := value(t, restored, "select string_agg(word, ', ') from kept"); got != "here" {
		t.Errorf("the restored table holds %q", got)
	}
}
