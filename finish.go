package stint

// Failure is an error as it is stored and shown.
type Failure struct {
	Class   string   `json:"class"`             // see [retry.ErrorClass]
	Classes []string `json:"classes,omitempty"` // all of them, where there are several
	Message string   `json:"message"`
	Stack   string   `json:"stack,omitempty"`

	// Recoverable reports whether a job can be retried after this error: not if the
	// error or a filter of the policy forbids it. It may be set when no retry is left.
	Recoverable bool `json:"recoverable"`

	// Note says what went wrong afterwards, such as a panic in the retry function.
	Note string `json:"note,omitempty"`
}

// AllClasses returns all classes of the error.
func (f *Failure) AllClasses() []string {
	if f.Classes != nil {
		return f.Classes
	}
	return []string{f.Class}
}
