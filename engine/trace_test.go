package engine_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
)

// An engine that is gone leaves why it is, and who found that out; one that stops says so itself.
func TestAnEngineThatIsGoneLeavesWhyAndWhoBuriedIt(t *testing.T) {
	s := openSQLite(t)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	first := start(t, s, stint.NewMux(), engine.Config{Instance: "first"})
	var burier store.EngineInfo
	eventually(t, "it has joined", func() bool {
		roster, err := s.Engines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(roster) == 1 {
			burier = roster[0]
		}
		return len(roster) == 1
	})
	killed := store.EngineInfo{Token: 4711, Instance: "killed", Slots: 1, TimeToLive: time.Hour, BootID: burier.BootID, PID: dead.ProcessState.Pid(), PIDStarted: 1}
	silent := store.EngineInfo{Token: 4712, Instance: "silent", Slots: 1, TimeToLive: 100 * time.Millisecond}
	for _, e := range []store.EngineInfo{killed, silent} {
		if err := s.Join(t.Context(), e, nil); err != nil {
			t.Fatal(err)
		}
		s.Release(e.Token)
	}
	ends := map[string]store.EngineEnd{}
	eventually(t, "both are buried", func() bool {
		all, err := s.FormerEngines(t.Context(), store.FormerFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			ends[e.Instance] = e.EngineEnd
		}
		return len(all) == 2
	})
	if err := first(); err != nil {
		t.Fatal(err)
	}
	all, err := s.FormerEngines(t.Context(), store.FormerFilter{Limit: 1})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	ends[all[0].Instance] = all[0].EngineEnd
	for name, want := range map[string]store.EngineEnd{
		"killed": {Why: store.WhyProcessGone, By: burier.Token, ByInstance: "first"},
		"silent": {Why: store.WhySilent, By: burier.Token, ByInstance: "first"},
		"first":  {Why: store.WhyLeft},
	} {
		if got := ends[name]; got.Why != want.Why || got.By != want.By || got.ByInstance != want.ByInstance {
			t.Errorf("of %s it is told %+v, want %+v", name, got, want)
		}
	}
}
