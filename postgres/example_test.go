package postgres_test

import (
	"fmt"
	"strings"

	"github.com/stint-go/stint/postgres"
)

// A deployment gives each role its rights: it runs the script as an
// administrator, before the schema is installed and after each upgrade.
func ExampleRoles() {
	script, err := postgres.Roles("jobs")
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(script) {
		if strings.Contains(line, "answer to") {
			fmt.Println(strings.TrimSpace(line))
		}
	}
	// Output:
	// grant execute on function "jobs".enqueue, "jobs".enqueue_flow, "jobs".add_to_flow, "jobs".signal, "jobs".answer to jobs_producer, jobs_caller;
}
