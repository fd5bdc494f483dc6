package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint/dashboard/guard"
)

// scene is a board with a page that takes a while to look at and says a number.
type scene struct {
	*Dashboard
	page  page
	says  atomic.Int64
	looks atomic.Int64
}

func newScene(takes time.Duration) *scene {
	s := &scene{Dashboard: &Dashboard{watches: watches{all: map[watched]*watch{}}}}
	s.page.data = func(*Dashboard, *http.Request) (any, error) {
		time.Sleep(takes)
		s.looks.Add(1)
		return s.says.Load(), nil
	}
	return s
}

func (s *scene) join(address string, role guard.Role) (*watch, func()) {
	return s.watches.join(s.Dashboard, &s.page, requestBy(address, role))
}

// looksIn counts how often pages are looked at in a time.
func (s *scene) looksIn(span time.Duration) int {
	s.looks.Store(0)
	time.Sleep(span)
	return int(s.looks.Load())
}

func requestBy(address string, role guard.Role) *http.Request {
	r := httptest.NewRequest(http.MethodGet, address, nil)
	return r.WithContext(guard.With(r.Context(), guard.Identity{Role: role}))
}

func TestThoseWhoHaveTheSamePageOpenShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(time.Millisecond)
		first, leaveFirst := s.join("/a", guard.Viewer)
		second, leaveSecond := s.join("/a", guard.Viewer)
		other, leaveOther := s.join("/a", guard.Operator)
		if first != second || first == other {
			t.Error("who shares a watch does not go by address and role")
		}
		if n := s.looksIn(20 * time.Second); n < 18 || n > 22 {
			t.Errorf("in 20 seconds two roles looked %d times", n)
		}
		leaveOther()
		leaveFirst()
		time.Sleep(time.Minute)
		if n := s.looksIn(20 * time.Second); n < 9 || n > 11 {
			t.Errorf("when one had left there were %d looks in 20 seconds", n)
		}
		leaveSecond()
		synctest.Wait()
		if n := s.looksIn(time.Minute); n > 0 {
			t.Errorf("when all had left there were %d looks", n)
		}
	})
}

func TestALookThatPanicsIsTroubleAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(time.Millisecond)
		calm := s.page.data
		s.page.data = func(b *Dashboard, r *http.Request) (any, error) {
			if s.says.Load() == 0 {
				panic("odd")
			}
			return calm(b, r)
		}
		w, leave := s.join("/a", guard.Viewer)
		defer leave()
		time.Sleep(time.Second)
		if l, _ := w.get(); l.err == nil || !strings.Contains(l.err.Error(), "a panic: odd") {
			t.Errorf("it looked like %+v", l)
		}
		s.says.Store(1)
		time.Sleep(5 * time.Second)
		if l, _ := w.get(); l.err != nil || l.data != int64(1) {
			t.Errorf("later it looked like %+v", l)
		}
	})
}

func TestAllLooksTogetherTakeAHundredthOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 50 * time.Millisecond
		s := newScene(takes)
		for i := range 10 {
			_, leave := s.join(fmt.Sprintf("/%d", i), guard.Viewer)
			defer leave()
		}
		if spent := time.Duration(s.looksIn(1000*time.Second)) * takes; spent < 9*time.Second || spent > 12*time.Second {
			t.Errorf("in 1000 seconds ten pages were looked at for %v", spent)
		}
	})
}

func TestAPageIsFetchedOfALookThatIsNewerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(time.Millisecond)
		s.says.Store(1)
		asked := func(role guard.Role, since time.Time) (any, bool) {
			l, ok := s.watches.since(requestBy("/a", role), strconv.FormatInt(since.UnixNano(), 10))
			return l.data, ok
		}
		before := time.Now()
		time.Sleep(time.Second)
		if _, ok := asked(guard.Viewer, before); ok {
			t.Error("a page that nobody has open was looked at")
		}
		_, leave := s.join("/a", guard.Viewer)
		time.Sleep(time.Second)
		if data, ok := asked(guard.Viewer, before); !ok || data != int64(1) {
			t.Errorf("what was seen since is %v, %v", data, ok)
		}
		if _, ok := asked(guard.Operator, before); ok {
			t.Error("an operator is told what viewers see")
		}
		now := time.Now()
		if data, ok := asked(guard.Viewer, now); ok {
			t.Errorf("who has a newer page is told %v", data)
		}
		s.says.Store(2)
		time.Sleep(5 * time.Second)
		if data, ok := asked(guard.Viewer, now); !ok || data != int64(2) {
			t.Errorf("what was seen since then is %v, %v", data, ok)
		}
		if _, ok := s.watches.since(requestBy("/a", guard.Viewer), "undefined"); ok {
			t.Error("who does not say what it has is told something")
		}
		leave()
	})
}
