package guard

import (
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// How many wrong secrets may be presented in a minute: from one address, and from
// all. After that nothing is compared until the minute is over.
const (
	triesOfOne = 10
	triesOfAll = 200
	triesFor   = time.Minute
)

var (
	errTooMany = errors.New("too many wrong tries; wait a minute")
	errWrong   = errors.New("that is wrong")
)

// tries counts wrong secrets, so that they cannot be guessed.
type tries struct {
	mu    sync.Mutex
	since time.Time
	wrong map[netip.Prefix]int
	all   int
}

func newTries() *tries { return &tries{wrong: map[netip.Prefix]int{}} }

// guarded identifies a client by what is cheap to look up, and otherwise by what is costly
// to compare (nil for none), unless that was tried too often. A client that the look-up
// finds always passes, however often others were wrong.
func (t *tries) guarded(r *http.Request, lookUp, compare func() (Identity, bool)) (Identity, error) {
	if who, ok := lookUp(); ok {
		return who, nil
	}
	from := origin(r)
	if t.spent(from) {
		return Identity{}, errTooMany
	}
	if compare != nil {
		if who, ok := compare(); ok {
			return who, nil
		}
	}
	t.count(from)
	return Identity{}, errWrong
}

// origin is where a request comes from. A client with one address of IPv6 has its /64.
func origin(r *http.Request) netip.Prefix {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	ip := addr.Addr().Unmap().WithZone("")
	prefix, _ := ip.Prefix(min(ip.BitLen(), 64))
	return prefix
}

func (t *tries) spent(from netip.Prefix) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.since) > triesFor {
		t.since, t.all = now, 0
		clear(t.wrong)
	}
	return t.wrong[from] >= triesOfOne || t.all >= triesOfAll
}

func (t *tries) count(from netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong[from]++
	t.all++
}
