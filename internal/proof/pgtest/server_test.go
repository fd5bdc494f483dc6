package pgtest

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestAServerKeepsItsAddressAndItsDataHoweverItStops(t *testing.T) {
	Each(t, func(t *testing.T, shared *Server) {
		server := Start(t, Options{Major: shared.Major()})
		url := server.New(t)
		execute(t, url, "create table stops (mode text)")
		for _, mode := range []Mode{Smart, Fast, Immediate} {
			execute(t, url, "insert into stops values ('"+string(mode)+"')")
			server.Restart(mode)
		}
		if got := value(t, url, "select string_agg(mode, ' ') from stops"); got != "smart fast immediate" {
			t.Errorf("the table holds %q", got)
		}
	})
}

func TestAStoppedServerIsGoneUntilItStarts(t *testing.T) {
	server := Start(t, Options{})
	url := server.URL("postgres")
	server.Stop(Fast)
	server.Stop(Fast) // Nothing is left to stop, and that is no mistake.
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		conn.Close(t.Context())
		t.Error("a stopped server still answers")
	}
	server.Start()
	server.Start()
	value(t, url, "select '1'")
}

func TestAKilledServerRecoversWhatWasCommitted(t *testing.T) {
	Each(t, func(t *testing.T, shared *Server) {
		server := Start(t, Options{Major: shared.Major(), Fsync: true})
		url := server.New(t)
		execute(t, url, "create table kept as select 'here' as word")
		for range 3 {
			busy := connect(t, url) // Its backend has to notice the death of its parent before the next start.
			server.Kill()
			if conn, err := pgx.Connect(t.Context(), url); err == nil {
				conn.Close(t.Context())
				t.Error("a killed server still answers")
			}
			server.Start()
			busy.Close(t.Context())
		}
		if got := value(t, url, "select word from kept"); got != "here" {
			t.Errorf("got %q after recovery", got)
		}
	})
}

func TestAPrivateServerTakesSettings(t *testing.T) {
	server := Start(t, Options{Fsync: true, Settings: map[string]string{
		"max_connections": "17",
		"search_path":     `"it's", "a \ name"`,
	}})
	for name, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "max_connections": "17", "search_path": `"it's", "a \ name"`,
	} {
		if got := value(t, server.URL("postgres"), "show "+name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestASettingThatTheServerRefusesIsReportedInItsOwnWords(t *testing.T) {
	_, err := open(Require(t, 0), Options{Settings: map[string]string{"max_connections": "many"}})
	if err == nil {
		t.Fatal("the server started")
	}
	wantWords(t, err.Error(), `invalid value for parameter "max_connections": "many"`)
}

func TestNothingIsLeftOfAPrivateServer(t *testing.T) {
	var server *Server
	t.Run("inner", func(t *testing.T) {
		server = Start(t, Options{})
		server.Kill()
	})
	if _, err := os.Stat(server.dir.path); !os.IsNotExist(err) {
		t.Errorf("the run directory is still there: %v", err)
	}
}

func TestASharedServerCannotBeDisturbed(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a test could kill the server that others use")
		}
	}()
	Shared(t, 0).Kill()
}

func TestAProgramThatIsNoTestHasAServerUntilItClosesIt(t *testing.T) {
	server, err := Open(Options{Settings: map[string]string{"max_connections": "37"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := value(t, server.URL("postgres"), "show max_connections"); got != "37" {
		t.Errorf("max_connections is %s, want 37", got)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(server.dir.path); !os.IsNotExist(err) {
		t.Errorf("the run directory is still there: %v", err)
	}
}
