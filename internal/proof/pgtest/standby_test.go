package pgtest

import "testing"

func TestAPromotedStandbyHasWhatItFollowedAndNothingElse(t *testing.T) {
	primary := Start(t, Options{})
	url := primary.New(t)
	database := value(t, url, "select current_database()")
	execute(t, url, "create table told as select 'before' as word")
	standby := primary.Standby(t)
	execute(t, url, "insert into told values ('streamed')")
	primary.Synchronous(true)
	execute(t, url, "insert into told values ('waited for')")
	primary.Synchronous(false)
	standby.Detach()
	execute(t, url, "insert into told values ('lost')")
	primary.Stop(Immediate)
	standby.Promote()
	all := "select string_agg(word, ', ') from told"
	if got := value(t, standby.URL(database), all); got != "before, streamed, waited for" {
		t.Errorf("the promoted server has %q", got)
	}
	execute(t, standby.URL(database), "insert into told values ('behind')")
	primary.Follow(standby)
	standby.Stop(Immediate)
	primary.Promote()
	if got := value(t, url, all); got != "before, streamed, waited for, behind" {
		t.Errorf("what took its place back has %q", got)
	}
}
