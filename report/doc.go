// Package report has what people ask of a store: the doctor's findings ([Diagnose]), statistics
// of all attempts ([Stats]), how the work goes at a moment ([Analytics]), failures by their
// causes ([ErrorReport]), and what each engine counted ([Metrics]).
//
// Each has a role that a store plays where it can.
package report
