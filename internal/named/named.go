// Package named keeps a process's functions under the names that data call them by.
// Retry policies and recurrences, which do not know each other, share it.
package named

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// MaxName is the length of the longest name, in bytes.
const MaxName = 255

// Check returns the problem of a name that ends up in databases and terminals, as a text
// that begins with what it is the name of; nothing when it is right.
func Check(what, name string) string {
	switch {
	case name == "":
		return what + " is empty"
	case len(name) > MaxName:
		return fmt.Sprintf("%s has %d bytes; the longest has %d", what, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Sprintf("%s %q is not valid UTF-8", what, name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("%s %q has a control character", what, name)
	}
	return ""
}

// Funcs are functions by name. The zero Funcs is empty and ready, and all methods may be
// called concurrently.
type Funcs[F any] struct {
	mu     sync.RWMutex
	byName map[string]F
}

// Register keeps fn under a name. Bad is the problem of the name, if it has one. A name
// is taken once: which of two functions answers must not depend on the order of imports.
func (f *Funcs[F]) Register(what, name, bad string, fn F, isNil bool) error {
	switch {
	case bad != "":
		return fmt.Errorf("register %s: %s", what, bad)
	case isNil:
		return fmt.Errorf("register %s %q: it is nil", what, name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.byName[name]; taken {
		return fmt.Errorf("register %s %q: it is registered already", what, name)
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
