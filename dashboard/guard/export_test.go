package guard

import "golang.org/x/crypto/bcrypt"

// The tests of this package compare many passwords.
func init() { leastCost = bcrypt.MinCost + 1 }
