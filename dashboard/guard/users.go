package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// User is a person with a password, presented as Authorization: Basic.
type User struct {
	Name string
	Role Role
	Hash string // bcrypt
}

// users identifies people by their passwords. Nil identifies nobody.
type users struct {
	byName map[string]User
	dummy  []byte // hash that is compared for unknown names, so that they take as long
	key    []byte // of what is remembered

	mu    sync.Mutex
	known map[[sha256.Size]byte]time.Time // passwords that were right lately, and until when that counts
}

// A password is compared again after this time: comparing takes a tenth of a second
// of a processor, and a browser sends it with each request.
const rememberFor = 5 * time.Minute

// leastCost is that of a hash that takes long enough to compare. Tests have less
// time.
var leastCost = 10

func newUsers(all []User) (*users, error) {
	if len(all) == 0 {
		return nil, nil
	}
	u := &users{byName: map[string]User{}, key: make([]byte, 32), known: map[[sha256.Size]byte]time.Time{}}
	rand.Read(u.key)
	most := leastCost
	for _, one := range all {
		cost, err := bcrypt.Cost([]byte(one.Hash))
		switch {
		case one.Name == "":
			return nil, fmt.Errorf("a user has no name")
		case err != nil:
			return nil, fmt.Errorf("the user %s: its hash is none of bcrypt: %w", one.Name, err)
		case cost < leastCost:
			return nil, fmt.Errorf("the user %s: a bcrypt cost of %d is too cheap to guess; %d at least", one.Name, cost, leastCost)
		case one.Role < Viewer || one.Role > Admin:
			return nil, fmt.Errorf("the user %s has no role", one.Name)
		case u.byName[one.Name].Name != "":
			return nil, fmt.Errorf("the user %s is there twice", one.Name)
		}
		most = max(most, cost)
		u.byName[one.Name] = one
	}
	var err error
	u.dummy, err = bcrypt.GenerateFromPassword(u.key, most)
	return u, err
}

// remembered identifies a user whose password was right lately.
func (u *users) remembered(name, password string) (Identity, bool) {
	if u == nil {
		return Identity{}, false
	}
	one, sum := u.byName[name], u.sum(name, password)
	u.mu.Lock()
	defer u.mu.Unlock()
	return Identity{Name: one.Name, Role: one.Role}, time.Now().Before(u.known[sum])
}

// compare identifies a user by a password. For an unknown name it takes as long.
func (u *users) compare(name, password string) (Identity, bool) {
	if u == nil {
		return Identity{}, false
	}
	one, there := u.byName[name]
	hash := u.dummy
	if there {
		hash = []byte(one.Hash)
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil || !there {
		return Identity{}, false
	}
	now, sum := time.Now(), u.sum(name, password)
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.known, func(_ [sha256.Size]byte, until time.Time) bool { return now.After(until) })
	u.known[sum] = now.Add(rememberFor)
	return Identity{Name: one.Name, Role: one.Role}, true
}

// sum stands for a name with a password, in this process only.
func (u *users) sum(name, password string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, u.key)
	fmt.Fprintf(mac, "%d %s %s", len(name), name, password)
	mac.Sum(sum[:0])
	return sum
}
