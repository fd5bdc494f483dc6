package prom

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Other is the value of a label for everything beyond the bound of [Config].
const Other = "other"

// bounded lets a label have so many values.
type bounded struct {
	max   int
	mu    sync.RWMutex // guards known
	known map[string]bool
}

// of is the value of the label for a name.
func (b *bounded) of(name string) string {
	name = strings.ToValidUTF8(name, "?")
	b.mu.RLock()
	known := b.known[name]
	b.mu.RUnlock()
	if known {
		return name
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.known[name]:
		return name
	case len(b.known) >= b.max:
		return Other
	case b.known == nil:
		b.known = map[string]bool{}
	}
	b.known[name] = true
	return name
}

// all are the names that the label has had, without that of the others.
func (b *bounded) all() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Collect(maps.Keys(b.known))
}
