package stint

// CancelStatus is what came of cancelling a job.
type CancelStatus string

// What can come of it.
const (
	CancelledNow    CancelStatus = "cancelled" // it will not run (again)
	CancelRequested CancelStatus = "asked"     // it is running, and its engine is told
	CancelTooLate   CancelStatus = "too late"  // it had ended otherwise
	CancelNotFound  CancelStatus = "not found" // there is no such job
)
