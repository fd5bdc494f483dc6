package retry

import (
	"fmt"
	"io"
	"sync"
	"testing"
)

// Packages are initialised one after the other, but programs may declare
// later, while engines look.
func TestClassesMayBeDeclaredWhileOthersLook(t *testing.T) {
	before := len(declared())
	defer func(list []errorClass) { errorClasses.list.Store(&list) }(declared())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			declare(fmt.Sprint("concurrent ", i), isOneOf(io.ErrNoProgress))
		})
		wg.Go(func() { ErrorClasses(io.ErrNoProgress) })
	}
	wg.Wait()
	if n := len(declared()) - before; n != 20 || len(ErrorClasses(io.ErrNoProgress)) != 20 {
		t.Errorf("%d classes were declared, %d are found", n, len(ErrorClasses(io.ErrNoProgress)))
	}
}
