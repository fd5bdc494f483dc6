package storetest

import "reflect"

// as is the store in a role that it may have or not. A test that asks for one
// that the store does not have is skipped.
func as[R any](t *T) R {
	t.Helper()
	r, ok := t.Store.(R)
	t.skipIf(!ok, "the store is no "+reflect.TypeFor[R]().String())
	return r
}

func (t *T) skipIf(lacks bool, why string) {
	t.Helper()
	if lacks {
		t.Skip(why)
	}
}
