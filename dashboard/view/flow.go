package view

import (
	"fmt"

	"github.com/stint-go/stint"
)

// NeedsInWords says what a blocked job waits for if that are jobs: needs job 17 to end first. It is
// empty if the job waits for none.
func NeedsInWords(j stint.JobInfo) string {
	switch {
	case j.State != stint.Blocked:
		return ""
	case j.IsFlow && j.NeedsFirst != 0:
		return fmt.Sprintf("waits for its jobs, such as job %d", j.NeedsFirst)
	case j.IsFlow:
		return "waits for its jobs"
	case j.NeedsFirst != 0:
		return fmt.Sprintf("needs job %d to end first", j.NeedsFirst)
	}
	return ""
}

// MemberInWords says which flow a job belongs to: flow 12 as fetch. It is empty if it belongs to none.
func MemberInWords(j stint.JobInfo) string {
	if j.Flow == 0 {
		return ""
	}
	said := fmt.Sprintf("flow %d", j.Flow)
	if j.Node != "" {
		said += " as " + j.Node
	}
	return said
}
