package sqlite

// As in the system's fcntl.h; package unix does not name them.
const (
	ofdSetLock = 90
	ofdGetLock = 92
)
