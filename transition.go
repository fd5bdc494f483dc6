package stint

// Reasons of a final attempt, beside those that retry policies give. Done and
// cancelled are not stored, since the outcome says as much: see [FinalReason].
const (
	ReasonDone      = "done"
	ReasonLost      = "lost"
	ReasonCancelled = "cancelled"
	ReasonExpired   = "expired"
)

// DefaultMaxLosses is how often a job may be lost with its engine before it
// is given up.
const DefaultMaxLosses = 3
