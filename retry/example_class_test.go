package retry_test

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/stint-go/stint/retry"
)

// Classes name errors for policies and people, once for the whole program.
var (
	noRows   = retry.ErrorClass("no_rows", sql.ErrNoRows)
	network  = retry.ErrorClassOf[*net.OpError]("network")
	deadlock = retry.ErrorClassOf("deadlock", func(e *sqlError) bool { return e.Code == "40P01" })
)

func ExampleErrorClass() {
	fmt.Println(retry.ErrorClasses(fmt.Errorf("load customer 42: %w", sql.ErrNoRows)))

	policy := retry.Default().Except(noRows) // it will not come
	fmt.Println(policy)
	// Output:
	// [no_rows]
	// exponential:10:1m,except=no_rows
}

func ExampleErrorClassOf() {
	fmt.Println(retry.ErrorClasses(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded})[0] == network)
	fmt.Println(retry.ErrorClasses(&sqlError{"40P01"})[0] == deadlock)
	fmt.Println(retry.ErrorClasses(&sqlError{"23505"}))

	policy := retry.ByError(
		retry.On(deadlock, retry.Fixed(5, 0)),
		retry.On(network, retry.Exponential(8, time.Second)),
		retry.Otherwise(retry.None()),
	)
	fmt.Println(policy.Validate())
	// Output:
	// true
	// true
	// [retry_test.sqlError]
	// <nil>
}

// sqlError stands for a driver's error.
type sqlError struct{ Code string }

func (e *sqlError) Error() string { return "SQL state " + e.Code }
