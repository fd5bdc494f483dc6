package check_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/stint-go/stint/internal/proof/check"
)

// One process enqueues, another works and is killed; a third does the rest.
func Example() {
	dir, err := os.MkdirTemp("", "check")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var w [3]*check.Writer
	for i, name := range []string{"producer", "worker-1", "worker-2"} {
		if w[i], err = check.Create(dir, name); err != nil {
			log.Fatal(err)
		}
	}

	intent := w[0].Intend("invoice-42") // before the commit is sent
	intent.Committed(1)                 // when its answer is there

	w[1].Start(check.Run{Job: 1, Attempt: 1})
	killed := check.Now()
	time.Sleep(time.Millisecond)
	w[2].Start(check.Run{Job: 1, Attempt: 2}).End(check.OK, "")

	history, err := check.Read(dir)
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now()
	facts := &check.Facts{ // as an audit of the store tells them
		Jobs:    []check.Job{{ID: 1, Key: "invoice-42", State: check.StateCompleted, Final: true}},
		Entries: []check.Entry{{Pos: 1, Job: 1, Attempt: 1, Behind: true}, {Pos: 2, Job: 1, Attempt: 2, Behind: true}},
		Claims: []check.Claim{
			{N: 1, Nonce: 11, Engine: 7, Positions: []int64{1}},
			{N: 2, Nonce: 12, Engine: 8, Positions: []int64{2}},
		},
		Executions: []check.Execution{
			{Pos: 1, Job: 1, Attempt: 1, Outcome: check.OutcomeLost, Charged: true, Engine: 7, Nonce: 11, Finished: now},
			{Pos: 2, Job: 1, Attempt: 2, Outcome: check.OutcomeCompleted, Final: true, Engine: 8, Nonce: 12, Finished: now},
		},
		Roster: []int64{8},
		Buried: map[int64]time.Time{7: now},
	}
	fmt.Println(check.Compare(history, facts, check.Options{Drained: true}).Violations[0])

	report := check.Compare(history, facts, check.Options{
		Drained:      true,
		Disturbances: []check.Disturbance{{Does: check.Kills, Process: "worker-1", From: killed}},
	})
	fmt.Println(report.Err(), report.Reruns)
	// Output:
	// loss: job 1: entry 1 was lost with engine 7, but nothing is known to have happened to worker-1
	// <nil> map[crash:1]
}
