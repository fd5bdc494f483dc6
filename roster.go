package stint

// EngineID is an engine's identity in the roster: 63 random bits, new each time
// that it joins. Whoever does not stand in the roster under its token can
// neither claim nor record.
type EngineID int64
