package pgtest
func runAsChild() bool { return false }
