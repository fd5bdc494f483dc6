package storetest_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stint-go/stint/storetest"
)

// faultVariable names, for the program that runs the tests again, the fault
// that the model is to have.
const faultVariable = "STINT_STORETEST_FAULT"

// mutants are faults of the model, each with the group of tests that is there
// to find it.
var mutants = []struct{ fault, group string }{
	{"shows what is not committed", "Tx"},
	{"takes any transaction", "Enqueue"},
	{"counts delays from the begin", "Tx"},
	{"rounds numbers", "Enqueue"},
	{"stores half of a batch", "Enqueue"},
	{"answers ids in falling order", "Enqueue"},
	{"forgets the suspicion", "Successor"},
	{"forgets arguments of later entries", "Successor"},
	{"forgets arguments of later entries", "Waiting"},
	{"has no front lane", "Successor"},
	{"has no front lane", "Bury"},
	{"keeps waits that were rolled back", "Tx"},
	{"ignores savepoints", "Tx"},
	{"does not ring at a commit", "Listen"},
	{"fails when it stops listening", "Listen"},

	{"forgets keys", "Keys"},
	{"calls duplicates new", "Keys"},
	{"takes any arguments for a key", "Keys"},
	{"compares the text of arguments", "Keys"},
	{"believes keys that are not committed", "Keys"},
	{"keeps keys that were rolled back", "Keys"},
	{"keeps the keys of what it refuses", "Keys"},
	{"stores what stands beside a conflict", "Keys"},
	{"forgets a key when its job ends", "Keys"},
	{"recovers with the key", "Keys"},
	{"forgets the keys of what it deletes", "Keys"},
	{"recovers without the correlation id", "Correlation"},
	{"recovers without the correlation id", "Retry"},
	{"forgets correlation ids", "Correlation"},
	{"forgets correlation ids later", "Correlation"},
	{"leaves out the first of a correlation", "Correlation"},
	{"has no source", "Correlation"},

	{"loses late rows", "Late"},
	{"loses late rows", "Beside"},
	{"loses late rows", "Concurrent"},
	{"claims in the wrong order", "Claim"},
	{"hands an entry out twice", "Claim"},
	{"hands an entry out twice", "Concurrent"},
	{"looks into foreign lanes", "Look"},
	{"looks at one lane only", "Look"},
	{"claims for the buried", "Claim"},
	{"claims for the buried", "Bury"},
	{"says busy without cause", "Claim"},
	{"takes more than Max", "Claim"},
	{"records empty claims", "Claim"},
	{"fetches in its own order", "Claim"},

	{"records for the buried", "Finish"},
	{"records for the buried", "Bury"},
	{"accepts a wrong nonce", "Finish"},
	{"stores poison", "Poison"},
	{"counts repetitions", "Finish"},
	{"repeats successors", "Finish"},
	{"repeats successors", "Concurrent"},
	{"overwrites outcomes", "Finish"},
	{"records the time of the flush", "Record"},
	{"loses results", "Record"},
	{"drops the successor", "Successor"},
	{"drops the successor", "Bury"},
	{"drops the successor", "Concurrent"},

	{"takes no losses for the default", "Losses"},
	{"forgets the bound of losses later", "Losses"},

	{"forgets when to begin", "Expiry"},
	{"forgets when to begin", "Enqueue"},
	{"forgets when to begin later", "Expiry"},
	{"counts from the enqueue when to begin", "Expiry"},
	{"takes what is due too late", "Expiry"},
	{"recovers with the time to begin by", "Expiry"},
	{"recovers with the time to begin by", "Retry"},

	{"forgets what is faulty when it is ready", "Faulty"},
	{"shows the ended as faulty", "Faulty"},
	{"filters by faulty in vain", "Faulty"},
	{"says nothing of a success", "Faulty"},
	{"promotes the undecided", "Undecided"},
	{"tells of every function", "Undecided"},
	{"tells of the first page only", "Undecided"},
	{"forgets what failed", "Undecided"},
	{"forgets where it waits", "Undecided"},
	{"decides for the buried", "Undecided"},
	{"decides about any attempt", "Undecided"},
	{"decides about what is not undecided", "Undecided"},
	{"decides and leaves it undecided", "Undecided"},
	{"counts what was decided before", "Undecided"},
	{"revives the cancelled", "Undecided"},

	{"marks what waits and leaves it waiting", "Cancel"},
	{"cancels what waits only", "Cancel"},
	{"cancels what waits only", "CancelRace"},
	{"hands out the cancelled like others", "Cancel"},
	{"hands out the cancelled like others", "CancelRace"},
	{"retries the cancelled", "CancelClaimed"},
	{"cancels what completed", "Cancel"},
	{"forgets why", "Cancel"},
	{"takes the last reason", "Cancel"},
	{"never comes too late", "Cancel"},
	{"cancels what is not there", "Cancel"},
	{"cancels the first only", "Cancel"},
	{"keeps the marks of what ended", "Cancel"},
	{"keeps the marks of what ended", "CancelRace"},
	{"keeps the marks of what ended", "Concurrent"},
	{"shows the cancelled as they were", "CancelClaimed"},
	{"shows of the cancelled when they ran last", "CancelClaimed"},
	{"tells of everything cancelled", "CancelClaimed"},
	{"does not ring for the cancelled", "CancelClaimed"},

	{"leaves waiting what it made ready", "Retry"},
	{"leaves waiting what it made ready", "OperateRace"},
	{"runs now whatever the time", "Retry"},
	{"charges for running now", "Retry"},
	{"leaves undecided what has a time", "Retry"},
	{"recovers what runs", "Retry"},
	{"recovers without the labels", "Retry"},
	{"forgets the provenance", "Retry"},
	{"recovers in place of the old", "Retry"},
	{"recovers as often as it is told", "Retry"},
	{"recovers twice", "Retry"},
	{"recovers twice", "OperateRace"},
	{"recovers what it has not", "Retry"},
	{"takes any time", "Retry"},
	{"does not ring for what runs again", "Retry"},
	{"operates without a context", "Retry"},
	{"deletes what only shows as ended", "Delete"},
	{"deletes the history only", "Delete"},
	{"brings back the deleted", "Delete"},
	{"holds the deleted", "Delete"},
	{"starts lanes again", "Delete"},

	{"takes names for others", "Pause"},
	{"pauses whatever it is told", "Pause"},
	{"pauses anew", "Pause"},
	{"pauses the usual lane only", "Pause"},
	{"does not ring for pauses", "Pause"},
	{"does not ring for resumptions", "Pause"},
	{"always resumes", "Pause"},
	{"lists queues with jobs only", "Pause"},

	{"takes names for others", "Lease"},
	{"gives any lease", "Lease"},
	{"gives a lease to everybody", "Lease"},
	{"gives leases to the buried", "Lease"},
	{"lets the buried hold leases", "Lease"},
	{"keeps leases for ever", "Lease"},
	{"renews as if it began", "Lease"},
	{"resigns for others", "Lease"},
	{"always resigns", "Lease"},
	{"does not ring for resignations", "Lease"},
	{"lets the deposed come back", "Lease"},
	{"leaves the deposed in place", "Lease"},
	{"forgets who was deposed", "Lease"},

	{"retains without the lease", "Retain"},
	{"deletes without a limit", "Retain"},
	{"retains for every age", "Retain"},
	{"passes over the young", "Retain"},
	{"has one time for all queues", "Retain"},
	{"has one time for all states", "Retain"},
	{"counts age from the enqueue", "Retain"},
	{"deletes what is to be tried again", "Retain"},
	{"keeps what was lost", "Retain"},
	{"keeps what expired", "Retain"},
	{"keeps what nobody claimed", "Retain"},
	{"brings back what was retained", "Retain"},
	{"forgets keys with their jobs", "Retain"},
	{"deletes claims that may be named", "Retain"},
	{"deletes the newest claim", "Retain"},
	{"deletes claims of jobs that are left", "Retain"},
	{"forgets engines of jobs that are left", "Retain"},

	{"completes for the buried", "Complete"},
	{"completes without a claim", "Complete"},
	{"completes what has an outcome", "Complete"},
	{"completes what was deleted", "Complete"},
	{"completes and leaves the rest open", "Complete"},
	{"keeps what could not complete", "Complete"},
	{"loses results of transactions", "Complete"},
	{"completes before the commit", "Complete"},

	{"buries the held", "Hold"},
	{"holds for the buried", "Hold"},
	{"holds for others", "Hold"},
	{"holds again with a beat", "Hold"},
	{"takes those let go of for gone", "Hold"},
	{"never lets go", "Hold"},
	{"never lets go", "Bury"},

	{"declares anew", "Roster"},
	{"drains everybody", "Roster"},
	{"drains the buried", "Roster"},
	{"says once to drain", "Roster"},
	{"resurrects at a beat", "Roster"},
	{"believes the beat that came last", "Roster"},
	{"resurrects at a beat", "Bury"},
	{"forgets part of what is held", "Roster"},
	{"forgets part of what is held", "Bury"},
	{"holds what is finished", "Roster"},
	{"lets every burier win", "BuryRace"},
	{"buries the living", "Bury"},
	{"announces everything", "Bury"},
	{"buries one claim only", "BuryRace"},

	{"forgets the bounds of schedules", "Schedules"},
	{"declares anew", "Schedules"},
	{"looks at the recurrence only", "Schedules"},
	{"forgets what comes next", "Schedules"},
	{"counts each declaration", "Schedules"},
	{"resumes what is declared", "Schedules"},
	{"does not ring for declarations", "Schedules"},
	{"fires what is paused", "Schedules"},
	{"fires what has ended", "Schedules"},
	{"pauses schedules anew", "Schedules"},
	{"makes up for the pause", "Schedules"},
	{"cancels what runs with its schedule", "Schedules"},
	{"leaves jobs of what is removed", "Schedules"},
	{"runs the next occurrence out of turn", "Schedules"},
	{"counts who is busy", "Schedules"},
	{"does not ring for occurrences", "Schedules"},
	{"fires early", "Fire"},
	{"plans what is old", "Fire"},
	{"asks for any function", "Fire"},
	{"passes over nothing", "Fire"},
	{"keeps quiet about problems", "Fire"},
	{"fires without a context", "Fire"},
	{"believes what it read", "Fire"},
	{"counts anew", "Fire"},
	{"doubles occurrences", "Fire"},
	{"lets all overlap", "Fire"},
	{"lets retries overlap", "Fire"},
	{"makes jobs that are due now", "Fire"},
	{"forgets the number", "Fire"},

	{"promotes early", "Waiting"},
	{"promotes in the order of ids", "Waiting"},
	{"promotes with the id as position", "Waiting"},
	{"skips what is due at the bound", "Waiting"},
	{"counts overdue jobs as none", "Waiting"},
	{"leaves promoted jobs waiting", "Waiting"},

	{"ignores contexts", "Interrupted"},
	{"forgets part of what is held", "Interrupted"},
	{"repeats successors", "Interrupted"},

	{"miscounts", "Inspect"},
	{"finds in the order of ids", "Inspect"},
	{"ends spans with their end", "Inspect"},
	{"knows one state only", "Inspect"},
	{"has no source", "Inspect"},
	{"knows one class only", "Inspect"},
	{"looks at the last attempt only", "Inspect"},
	{"excludes crashes", "Inspect"},
	{"keeps the first figures", "Metrics"},
	{"knows engines by their names", "Metrics"},
	{"lists the oldest figures first", "Metrics"},
	{"takes an engine's clock for its own", "Metrics"},

	{"takes the postponed for queued", "Analytics"},
	{"queues the cancelled", "Analytics"},
	{"analyzes any tag", "Analytics"},
	{"sees no zombies", "Analytics"},
	{"takes all time for a minute", "Analytics"},
	{"counts what did not begin", "Analytics"},
	{"measures from the enqueue", "Analytics"},
	{"takes the rank below", "Analytics"},
	{"takes the mean for the median", "Analytics"},
	{"groups by anything", "Analytics"},
	{"groups the first tag", "Analytics"},
	{"leaves out who says nothing", "Analytics"},
	{"looks at the first key only", "Analytics"},
	{"counts what was not tried again", "Analytics"},
	{"looks how long the last attempt took", "Analytics"},

	{"sums up twice", "Stats"},
	{"forgets the attempts of what it deletes", "Stats"},
	{"counts what did not begin", "Stats"},
	{"takes the lost for short", "Stats"},
	{"forgets errors that were tried again", "Errors"},
	{"takes the lost for well", "Errors"},
	{"groups errors of everything", "Errors"},
	{"tells all of a message", "Errors"},
	{"sees no places", "Errors"},
	{"cuts errors off", "Errors"},
	{"groups any number of errors", "Errors"},

	{"forgets changes", "Change"},
	{"lists the oldest changes first", "Change"},
	{"forgets what came of changes", "Change"},
	{"takes every change for done", "Change"},
	{"lets the last word stand", "Change"},
	{"filters changes in vain", "Change"},
	{"repeats a change on the next page", "Change"},
	{"keeps any details", "Change"},
	{"keeps odd texts of changes", "Change"},
	{"numbers changes anew", "Change"},
	{"retains young changes", "Change"},

	{"bounds statistics by the instant", "Stats"},
	{"tells hours for minutes", "Stats"},
	{"tells minutes for ever", "Stats"},
	{"takes any span for its statistics", "Stats"},
	{"measures from the enqueue", "Stats"},

	{"lets any program join", "Migrate"},
	{"keeps engines that are too old", "Migrate"},
	{"drains at every upgrade", "Migrate"},
	{"works on any schema", "Migrate"},

	{"tells of what was taken as ready", "Doctor"},
	{"passes over what is late", "Doctor"},
	{"tells what it took once", "Doctor"},
	{"passes over who paused", "Doctor"},
	{"counts doubts from the enqueue", "Doctor"},
	{"counts what the living hold", "Doctor"},
	{"changes what it looks at", "Doctor"},
}

// A test that cannot fail is worse than none, so each fault must be found by
// the tests that are there for it.
func TestSuiteCatchesMutants(t *testing.T) {
	if os.Getenv(faultVariable) != "" {
		t.Skip("this is a mutant")
	}
	if testing.Short() {
		t.Skip("it runs the suite many times")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.fault+", "+m.group, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestModel$/^"+m.group+"$", "-test.failfast", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), faultVariable+"="+m.fault, storetest.LoadVariable+"=0.2")
			out, err := cmd.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("no test found it:\n%s", out)
			case bytes.Contains(out, []byte("\npanic: ")):
				t.Errorf("it was found by a panic instead of a test:\n%s", out)
			case !bytes.Contains(out, []byte("--- FAIL: TestModel/"+m.group+"/")):
				t.Errorf("something else failed:\n%s", out)
			}
		})
	}
}
