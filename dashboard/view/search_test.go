package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/store"
)

// rows is an inspector of so many jobs, of which every hundredth has a needle.
type rows struct {
	store.Inspector
	n     stint.ID
	calls int
	most  int
	walk  time.Duration // that looking at a job takes
	dear  stint.ID      // up to which it does; 0 for all
}

func (r *rows) Jobs(_ context.Context, f store.Filter) ([]stint.JobInfo, error) {
	r.calls++
	r.most = max(r.most, f.Limit)
	from := r.n
	if f.Before != 0 {
		from = min(r.n, f.Before-1)
	}
	var jobs []stint.JobInfo
	for id := from; id > f.After && len(jobs) < f.Limit; id-- {
		if r.dear == 0 || id <= r.dear {
			time.Sleep(r.walk)
		}
		if f.Kind != "" && id%1000 != 1 {
			continue
		}
		args := fmt.Sprintf(`{"n":%d}`, id)
		if id%100 == 0 {
			args = `{"needle":true}`
		}
		jobs = append(jobs, stint.JobInfo{ID: id, Args: json.RawMessage(args)})
	}
	return jobs, nil
}

func TestASearchByTextSaysHowFarItLooked(t *testing.T) {
	for name, c := range map[string]struct {
		jobs          stint.ID
		before        stint.ID
		limit         int
		text          string
		found, looked int
		cut           bool
		first, next   stint.ID
	}{
		"there are none":           {0, 0, 50, "needle", 0, 0, false, 0, 0},
		"all are looked at":        {1_050, 0, 50, "needle", 10, 1_050, false, 1_000, 0},
		"the page is full":         {100_000, 0, 3, "needle", 3, 201, false, 100_000, 99_800},
		"behind another page":      {100_000, 99_900, 3, "needle", 3, 300, false, 99_800, 99_600},
		"the bound comes first":    {300_000, 0, 5_000, "needle", 1_000, view.SearchLimit, true, 300_000, 200_001},
		"nothing holds it":         {150_000, 0, 50, "pin", 0, view.SearchLimit, true, 0, 50_001},
		"exactly as many as bound": {view.SearchLimit, 0, 50, "pin", 0, view.SearchLimit, true, 0, 1},
		"behind the bound":         {150_000, 50_001, 50, "pin", 0, 50_000, false, 0, 0},
	} {
		r := &rows{n: c.jobs}
		got, err := view.Search{Inspector: r, Text: c.text}.Find(t.Context(), store.Filter{Before: c.before, Limit: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		first := stint.ID(0)
		if len(got.Jobs) > 0 {
			first = got.Jobs[0].ID
		}
		if len(got.Jobs) != c.found || got.Looked != c.looked || got.Cut != c.cut || first != c.first || got.Next != c.next {
			t.Errorf("%s: found %d from %d on, looked at %d, cut off: %v, next %d", name, len(got.Jobs), first, got.Looked, got.Cut, got.Next)
		}
		if r.most > 2000 {
			t.Errorf("%s: %d were asked for at once", name, r.most)
		}
	}
}

func TestASearchInAHurryEndsSoonAndGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		testSoon(t, &rows{n: 1_000_000, walk: time.Microsecond})
		testSoon(t, &rows{n: 2_000_000, walk: time.Microsecond, dear: 600_000}) // it has got up speed by then
	})
}

// testSoon goes through what is rare.
func testSoon(t *testing.T, r *rows) {
	t.Helper()
	var ids []stint.ID
	searches := 0
	for f := (store.Filter{Kind: "rare", Limit: 3000}); ; searches++ {
		began := time.Now()
		got, err := view.Search{Inspector: r, Soon: true}.Find(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("a search in a hurry took %v", took)
		}
		for _, j := range got.Jobs {
			ids = append(ids, j.ID)
		}
		if f.Before = got.Next; got.Next == 0 {
			break
		}
	}
	var want []stint.ID
	for id := r.n - 999; id > 0; id -= 1000 {
		want = append(want, id)
	}
	if !slices.Equal(ids, want) || searches < 4 {
		t.Errorf("%d searches found %d jobs, want %d from %d on", searches, len(ids), len(want), want[0])
	}
}

func TestASearchInAHurryFindsWhatIsFarBackWhereLittleIsInBetween(t *testing.T) {
	r := &rows{n: 5}
	for _, jump := range []stint.ID{0, 1 << 40, 1<<53 - 1} {
		got, err := view.Search{Inspector: r, Soon: true}.Find(t.Context(), store.Filter{Kind: "rare", Before: jump, Limit: 50})
		if err != nil || len(got.Jobs) != 1 || got.Jobs[0].ID != 1 || got.Next != 0 || got.Cut {
			t.Errorf("from %d on there are %+v, %v", jump, got, err)
		}
	}
	if r.calls > 100 {
		t.Errorf("it took %d questions", r.calls)
	}
}
