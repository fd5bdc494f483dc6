//go:build !unix

package engine

import "time"

// processTime would return how much processor time this process has used. Without it the run times of jobs
// alone say that the processors are busy.
func processTime() time.Duration { return 0 }
