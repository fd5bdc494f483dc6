package cli

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
)

// hour is what a shop enqueues in an hour.
func hour(seed uint64) (jobs []stint.NewJob) {
	load := newShopLoad(5, seed)
	for range time.Hour / shopBeat {
		jobs = append(jobs, load.next()...)
	}
	return jobs
}

// told are jobs by what people see of them.
func told(jobs []stint.NewJob) (all []string) {
	for _, j := range jobs {
		all = append(all, j.Kind+" "+string(j.Args))
	}
	return all
}

func TestTheSameSeedMakesTheSameLoad(t *testing.T) {
	one, same, other := told(hour(7)), told(hour(7)), told(hour(8))
	if diff := cmp.Diff(one, same); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
	if slices.Equal(one, other) {
		t.Error("another seed makes the same jobs")
	}
}

func TestTheLoadHasSomethingOfEverything(t *testing.T) {
	jobs := hour(1)
	if want := 5 * 3600; len(jobs) < want*9/10 || len(jobs) > want*11/10 {
		t.Errorf("%d jobs were enqueued in an hour, want about %d", len(jobs), want)
	}
	seen := map[string]bool{}
	for _, j := range jobs {
		if err := j.Check(stint.Limits{}); err != nil {
			t.Fatalf("%s %s: %v", j.Kind, j.Args, err)
		}
		seen[j.Kind], seen[j.Queue] = true, true
		seen["a delay"] = seen["a delay"] || j.Delay > 0
		seen["a urn"] = seen["a urn"] || j.URN != ""
		seen["a correlation"] = seen["a correlation"] || j.Correlation != ""
		for _, tag := range j.Tags {
			seen[tag] = true
		}
	}
	for _, want := range []string{
		"demo.order", "demo.mail", "demo.newsletter", "demo.thumbnail", "demo.webhook", "demo.report", "demo.build",
		"demo.shop", "demo.media", "demo.webhooks", "demo.reports", "a delay", "a urn", "a correlation", "demo", "vip", "reminder", "newsletter",
	} {
		if !seen[want] {
			t.Errorf("there is no %s in an hour", want)
		}
	}
	for _, s := range shopSchedules(time.Now().Add(time.Hour)) {
		if err := s.Check(stint.Limits{}); err != nil {
			t.Errorf("the schedule %s: %v", s.Name, err)
		}
	}
}

func TestWhatBecomesOfAJobOfTheShopFollowsFromItsArguments(t *testing.T) {
	failed := map[string]int{}
	for i := range 1000 {
		for _, k := range shopKinds {
			fate := func(args string, attempt int) (fate string) {
				defer func() {
					if v := recover(); v != nil {
						fate = "panic"
					}
				}()
				var decoded map[string]any
				if err := json.Unmarshal([]byte(args), &decoded); err != nil {
					t.Fatal(err)
				}
				if err := k.trouble(diceOf(k.name, decoded, 0), attempt); err != nil {
					return err.Error()
				}
				return ""
			}
			n, err := json.Marshal(i)
			if err != nil {
				t.Fatal(err)
			}
			first := fate(`{"a": 1, "order": `+string(n)+`}`, 1)
			if again := fate(`{"order":`+string(n)+`,"a":1}`, 1); again != first {
				t.Fatalf("%s %d: %q and %q", k.name, i, first, again)
			}
			if first != "" {
				failed[k.name]++
			}
		}
	}
	for _, k := range shopKinds {
		want := 0
		for _, trouble := range k.troubles {
			want += 10 * trouble.percent
		}
		if n := failed[k.name]; n < want*6/10 || n > want*14/10 {
			t.Errorf("of 1000 jobs of %s %d fail, want about %d", k.name, n, want)
		}
	}
}
