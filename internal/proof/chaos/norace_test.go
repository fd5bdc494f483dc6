//go:build unix && !race

package chaos_test

// raceDetector says that the tests run with it.
const raceDetector = false
