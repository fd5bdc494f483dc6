package stint

// CancelStatus says what happened to a job that was to be cancelled.
type CancelStatus string

// The results of a cancellation.
const (
	CancelledNow    CancelStatus = "cancelled" // it will not run (again)
	CancelRequested CancelStatus = "asked"     // it is running, and its engine will cancel it
	CancelTooLate   CancelStatus = "too late"  // it had ended otherwise
	CancelNotFound  CancelStatus = "not found" // there is no such job
)
