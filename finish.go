package stint

// Failure is an error as it is stored and shown.
type Failure struct {
	Class   string   `json:"class"`             // see [retry.ErrorClass]
	Classes []string `json:"classes,omitempty"` // all of them, where there are several
	Message string   `json:"message"`
	Stack   string   `json:"stack,omitempty"`

	// Recoverable says whether an attempt that fails like this can be tried
	// again: not when the error forbids it or a filter of the policy does. That
	// no retry is left is another matter.
	Recoverable bool `json:"recoverable"`

	// Note says what was odd about what followed, such as a panic in the
	// function that decided it.
	Note string `json:"note,omitempty"`
}

// AllClasses are all classes of the error.
func (f *Failure) AllClasses() []string {
	if f.Classes != nil {
		return f.Classes
	}
	return []string{f.Class}
}
