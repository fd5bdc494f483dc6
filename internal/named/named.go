// Package named keeps a process's functions under the names that data call them by.
//
// It is one package because retry policies and recurrences, which know nothing
// of each other, both leave to code what no data can say.
package named

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Funcs are functions by name. The zero Funcs is empty and ready, and all methods may be
// called concurrently.
type Funcs[F any] struct {
	mu     sync.RWMutex
	byName map[string]F
}

// Add keeps fn under a name. A name is taken once: which of two functions answers
// must not depend on the order of imports.
func (f *Funcs[F]) Add(name string, fn F) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.byName[name]; taken {
		return fmt.Errorf("%q: it is registered already", name)
	}
	if f.byName == nil {
		f.byName = make(map[string]F)
	}
	f.byName[name] = fn
	return nil
}

// Find returns the function of a name, or the zero F when there is none.
func (f *Funcs[F]) Find(name string) F {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.byName[name]
}

// Names lists the functions by name.
func (f *Funcs[F]) Names() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Sorted(maps.Keys(f.byName))
}
