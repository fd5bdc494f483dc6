package remote

// The tests of this package need not read much.
func init() { maxAnswer = 4 << 20 }
