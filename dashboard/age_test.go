package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// ill is a store whose reads of figures take long, never end, or fail.
type ill struct {
	*sqlite.Store
	takes atomic.Int64 // how long they take; a negative one never ends
	fails atomic.Bool
}

func (s *ill) suffer(ctx context.Context) error {
	wait := make(<-chan time.Time)
	if takes := time.Duration(s.takes.Load()); takes >= 0 {
		wait = time.After(takes)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait:
	}
	if s.fails.Load() {
		return errors.New("the database is down")
	}
	return nil
}

func (s *ill) Activity(ctx context.Context, f report.AnalyticsFilter) (report.Activity, error) {
	if err := s.suffer(ctx); err != nil {
		return report.Activity{}, err
	}
	return s.Store.Activity(ctx, f)
}

func (s *ill) Analyze(ctx context.Context, f report.AnalyticsFilter) (report.Analytics, error) {
	if err := s.suffer(ctx); err != nil {
		return report.Analytics{}, err
	}
	return s.Store.Analyze(ctx, f)
}

func (s *ill) AnalyzeKinds(ctx context.Context, f report.AnalyticsFilter) ([]report.KindAnalytics, error) {
	if err := s.suffer(ctx); err != nil {
		return nil, err
	}
	return s.Store.AnalyzeKinds(ctx, f)
}

func (s *ill) DueBy(ctx context.Context, field report.Field, f report.AnalyticsFilter, limit int) ([]report.DueGroup, error) {
	if err := s.suffer(ctx); err != nil {
		return nil, err
	}
	return s.Store.DueBy(ctx, field, f, limit)
}

func (s *ill) Stats(ctx context.Context, f report.StatsFilter) ([]report.Stats, error) {
	if err := s.suffer(ctx); err != nil {
		return nil, err
	}
	return s.Store.Stats(ctx, f)
}

func (s *ill) Errors(ctx context.Context, f report.ErrorFilter) (report.ErrorReport, error) {
	if err := s.suffer(ctx); err != nil {
		return report.ErrorReport{}, err
	}
	return s.Store.Errors(ctx, f)
}

func (s *ill) Examine(ctx context.Context, what report.Options) (report.Facts, error) {
	if err := s.suffer(ctx); err != nil {
		return report.Facts{}, err
	}
	return s.Store.Examine(ctx, what)
}

// ward is a dashboard on such a store, in a bubble.
type ward struct {
	*testing.T
	*ill
	board *Dashboard
}

func newWard(t *testing.T) *ward {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	info := store.EngineInfo{Token: 5, Instance: "one", Kinds: []string{"k"}, Slots: 1, TimeToLive: time.Hour}
	if err := db.Join(t.Context(), info, []stint.KindInfo{{Name: "k"}}); err != nil {
		t.Fatal(err)
	}
	w := &ward{T: t, ill: &ill{Store: db}}
	w.board, err = New(w.ill, Config{Guard: guard.Config{Stranger: guard.Viewer, Link: "a-secret-that-nobody-guesses"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { time.Sleep(2 * time.Minute) }) // until looks that never end are given up
	return w
}

func (w *ward) enqueue() {
	w.Helper()
	if _, err := stint.NewClient(w.Store).Enqueue(w.Context(), stint.NewJob{Kind: "k", Args: json.RawMessage(`{}`)}); err != nil {
		w.Fatal(err)
	}
}

// page loads a page, or, for a browser that has it open, what changed of it.
func (w *ward) page(path string, open bool) string {
	w.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1234"
	if open {
		r.Header.Set(partial, "0")
	}
	got := httptest.NewRecorder()
	w.board.ServeHTTP(got, r)
	if got.Code != 200 {
		w.Fatalf("%s answers %d: %s", path, got.Code, got.Body)
	}
	return got.Body.String()
}

var saysAge = regexp.MustCompile(`class="note asof( brief)?( old)?" data-at="(\d+)"`)

// ages are how old a page says that its figures are. It must mark those that are old, and
// no other.
func (w *ward) ages(path, page string) (all []time.Duration) {
	w.Helper()
	for _, found := range saysAge.FindAllStringSubmatch(page, -1) {
		at, err := strconv.ParseInt(found[3], 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		age := time.Since(time.UnixMilli(at))
		if old := found[2] != ""; old != (age > 10*time.Second) {
			w.Errorf("what is %v old on %s is marked as old: %t", age, path, old)
		}
		all = append(all, age)
	}
	return all
}

var findings = regexp.MustCompile(`(?s)<section[^>]*data-live="(attention|findings)".*?</section>`)

var queuedCard = regexp.MustCompile(`<div class="label">Queued</div><div class="figure">([0-9,]+)</div>.*data-at="(\d+)"`)

func TestNoFigureIsOlderThanItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		paths := []string{"/", "/queues", "/kinds", "/kinds/k", "/errors", "/database"}
		for _, path := range paths {
			w.page(path, false)
		}
		time.Sleep(time.Minute)
		var enqueued []time.Time
		stopped, unhealthy := time.Time{}, false
		for second := 0; second < 200; second += 2 {
			switch second {
			case 10:
				w.takes.Store(-1)
			case 40:
				w.fails.Store(true)
			case 90: // looks that never end are given up after a minute
				w.takes.Store(0)
			case 130:
				w.fails.Store(false)
			}
			if unhealthy = second >= 10 && second < 130; second == 10 {
				stopped = time.Now()
			}
			w.enqueue() // so how many are queued tells when that was found
			enqueued = append(enqueued, time.Now())
			for _, path := range paths {
				// Findings go on to be made of what can be read.
				page := findings.ReplaceAllString(w.page(path, false), "")
				ages := w.ages(path, page)
				if len(ages) == 0 && path != "/database" {
					t.Fatalf("after %d seconds %s says of nothing how old it is", second, path)
				}
				for _, age := range ages {
					if unhealthy && time.Now().Add(-age).After(stopped) {
						t.Errorf("%d seconds: on %s a figure says that it is %v old, and nothing was read for %v", second, path, age, time.Since(stopped))
					}
					if (second < 10 || second > 190) && age > 3*time.Second {
						t.Errorf("%d seconds: on %s a figure is %v old", second, path, age)
					}
				}
				if found := queuedCard.FindStringSubmatch(page); found != nil {
					n, _ := strconv.Atoi(found[1])
					at, _ := strconv.ParseInt(found[2], 10, 64)
					if n < len(enqueued) && enqueued[n].Before(time.UnixMilli(at)) {
						t.Errorf("%d seconds: %d are queued, it says, at a time when more were", second, n)
					}
				} else if path == "/" {
					t.Fatalf("there is no figure of what is queued: %s", page)
				}
			}
			time.Sleep(2 * time.Second)
		}
	})
}

func TestTheOverviewSaysOnceHowOldFreshFiguresAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.page("/", false)
		time.Sleep(time.Minute)
		w.page("/", false)
		time.Sleep(time.Second)
		told := func() (n int) {
			for _, found := range saysAge.FindAllStringSubmatch(w.page("/", false), -1) {
				if found[1] == "" || found[2] != "" { // it is seen: see the style sheet
					n++
				}
			}
			return n
		}
		if n := told(); n != 1 {
			t.Errorf("of fresh figures it says %d times how old they are", n)
		}
		w.takes.Store(-1)
		time.Sleep(20 * time.Second)
		if n := told(); n < 5 {
			t.Errorf("of old figures it says %d times how old they are", n)
		}
	})
}

// A slow database is when people look.
func TestWhatIsCheapIsFreshOnAnOpenPageHoweverSlowReadsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.takes.Store(int64(time.Second))
		r := httptest.NewRequest("GET", "/", nil)
		_, leave := w.board.watches.join(w.board, &pages[0], r.WithContext(guard.With(r.Context(), guard.Identity{Role: guard.Viewer})))
		defer leave()
		time.Sleep(10 * time.Second)
		for range 100 {
			page := w.page("/", true)
			_, running, _ := strings.Cut(page, `<div class="label">Running`)
			running, _, _ = strings.Cut(running, `<div class="label">`)
			ages := w.ages("/", running)
			if len(ages) != 1 || ages[0] > 10*time.Second {
				t.Errorf("what runs is %v old: %s", ages, running)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

func TestWhatIsNotKnownIsNoZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.takes.Store(-1)
		w.enqueue()
		figure := regexp.MustCompile(`(?s)<div class="figure">(.*?)</div>`)
		for _, path := range []string{"/", "/kinds/k", "/queues", "/kinds", "/database"} {
			page := w.page(path, false)
			for _, found := range figure.FindAllStringSubmatch(page, -1) {
				if !strings.Contains(found[1], "not known") {
					t.Errorf("on %s a figure is %q before it was read", path, found[1])
				}
			}
			if strings.Contains(page, "last 0s") || strings.Contains(page, "Nothing") || path == "/database" && !strings.Contains(page, "not known") {
				t.Errorf("%s says %s", path, page)
			}
		}
	})
}
