// Package pgload is what a measurement does to a PostgreSQL server beside the
// program that it measures: it holds transactions open meanwhile. It knows
// nothing of stint.
package pgload
