//go:build unix && race

package chaos_test

const raceDetector = true
