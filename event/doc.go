// Package event is what engines and stores tell those who listen: events of jobs and engines
// ([Event]), statements ([Query]), and why an engine is not ready ([UnreadyError]).
//
// Package observe turns them into lines of a log, metrics and traces.
package event
