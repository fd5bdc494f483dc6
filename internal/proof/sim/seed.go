package sim

import "strconv"

// Seed is where everything that is left to chance comes from. The workload has
// grown, and a seed that was kept from before means what it meant then.
type Seed struct {
	N   uint64
	Age Age
}

// Age says what the workload of a seed leaves out.
type Age int

// The ages, the youngest first.
const (
	Young   Age = iota // nothing
	Lasting            // retention, and leases with it
	Single             // schedules
	Twisted            // and people who operate, callers, pools of slots and retry functions
	Plain              // and the twists of jobs
)

var ages = map[Age]string{Young: "", Lasting: "-lasting", Single: "-single", Twisted: "-twisted", Plain: "-plain"}

// String is how the seed is written.
func (s Seed) String() string { return strconv.FormatUint(s.N, 10) + ages[s.Age] }
