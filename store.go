package stint

// Store is what an engine needs of a database. Producers need [Enqueuer]
// only, people [Inspector]; every consumer accepts the narrowest role. The
// contract of each role is proven for every store by package storetest.
//
// All methods may be called concurrently unless they say otherwise.
type Store interface {
	Enqueuer
	Claimer
	Finisher
	Roster
	Promoter
}
