package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
)

// rows is an inspector of so many jobs, of which every hundredth has a needle.
type rows struct {
	stint.Inspector
	n     stint.ID
	calls int
	most  int
}

func (r *rows) Jobs(_ context.Context, f stint.Filter) ([]stint.JobInfo, error) {
	r.calls++
	r.most = max(r.most, f.Limit)
	from := r.n
	if f.Before != 0 {
		from = f.Before - 1
	}
	var jobs []stint.JobInfo
	for id := from; id > 0 && len(jobs) < f.Limit; id-- {
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
		first         stint.ID
	}{
		"there are none":           {0, 0, 50, "needle", 0, 0, false, 0},
		"all are looked at":        {1_050, 0, 50, "needle", 10, 1_050, false, 1_000},
		"the page is full":         {100_000, 0, 3, "needle", 3, 201, true, 100_000},
		"behind another page":      {100_000, 99_900, 3, "needle", 3, 300, true, 99_800},
		"the bound comes first":    {300_000, 0, 5_000, "needle", 1_000, view.SearchLimit, true, 300_000},
		"nothing holds it":         {150_000, 0, 50, "pin", 0, view.SearchLimit, true, 0},
		"exactly as many as bound": {view.SearchLimit, 0, 50, "pin", 0, view.SearchLimit, true, 0},
	} {
		r := &rows{n: c.jobs}
		got, err := view.Search(t.Context(), r, stint.Filter{Before: c.before, Limit: c.limit}, c.text)
		if err != nil {
			t.Fatal(err)
		}
		first := stint.ID(0)
		if len(got.Jobs) > 0 {
			first = got.Jobs[0].ID
		}
		if len(got.Jobs) != c.found || got.Looked != c.looked || got.Cut != c.cut || first != c.first {
			t.Errorf("%s: found %d from %d on, looked at %d, cut off: %v", name, len(got.Jobs), first, got.Looked, got.Cut)
		}
		if r.most > 2000 {
			t.Errorf("%s: %d were asked for at once", name, r.most)
		}
	}
}
