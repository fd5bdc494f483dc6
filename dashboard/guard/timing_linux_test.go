package guard_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/stint-go/stint/dashboard/guard"
)

// The time is that of the processor: on a busy machine a clock tells nothing.
func TestANameThatThereIsNotTakesAsLongAsAWrongPassword(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(1, &u); err != nil { // of this thread
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	dear, err := bcrypt.GenerateFromPassword([]byte("correct horse"), 9)
	if err != nil {
		t.Fatal(err)
	}
	h := wrapped(t, guard.Config{Users: []guard.User{{Name: "ann", Role: guard.Viewer, Hash: string(dear)}}})
	least := func(name string) time.Duration {
		best := time.Hour
		for range 5 {
			r := request("GET", "http://localhost/")
			r.SetBasicAuth(name, "guess")
			begin := spent()
			if _, res := ask(t, h, r); res.StatusCode != 401 {
				t.Fatalf("%s is answered with %d", name, res.StatusCode)
			}
			best = min(best, spent()-begin)
		}
		return best
	}
	there, not := least("ann"), least("bob")
	if t.Logf("a wrong password takes %v, and a name that there is not %v", there, not); not < there/2 || not > there*2 {
		t.Error("whoever looks at the clock learns which names there are")
	}
}
