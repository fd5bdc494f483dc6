package model

// search is one exhaustive search: a configuration of the model, and what is
// to come of it.
type search struct {
	name  string
	what  string
	flags string // definitions, without -D
	want  string // the property that a mutant breaks; empty when nothing may break
	long  bool   // takes minutes: only with -thorough

	permits bool // it is one of the model of permits
}

// sources are the files of the models.
var sources = []string{"stint.pml", "permits.pml"}

func (s search) source() string {
	if s.permits {
		return "permits.pml"
	}
	return "stint.pml"
}

// The configurations. Each has one concern with as much as fits around it;
// those marked long have more of everything.
var configurations = []search{
	{name: "frontier", what: "2 engines read behind 3 transactions that commit in any order or roll back",
		flags: "SESSIONS=2 SEED=0 PRODUCERS=3 EXTRA=0 TAKE=2 REQUESTS=3 NOISE ROLLBACKS CLAIMS_ONLY"},
	{name: "cut short", what: "2 engines take one entry at a time from 2 transactions of two",
		flags: "SESSIONS=2 SEED=0 PRODUCERS=2 EACH=2 EXTRA=0 TAKE=1 REQUESTS=3 NOISE ROLLBACKS CLAIMS_ONLY"},
	{name: "three claimers", what: "3 engines and 3 entries, two of them in transactions",
		flags: "SESSIONS=3 SEED=1 PRODUCERS=2 EXTRA=0 TAKE=1 REQUESTS=2 NOISE CLAIMS_ONLY"},
	{name: "burial", what: "2 engines that crash, freeze and are buried, in the right or not; transactions are cut off",
		flags: "SESSIONS=2 SEED=2 EXTRA=1 TAKE=2 REQUESTS=2 BURIALS=2 CRASHES ABORTS=1"},
	{name: "race", what: "2 buriers of one engine, beside a producer; transactions are cut off",
		flags: "SESSIONS=1 SEED=1 PRODUCERS=1 EXTRA=2 TAKE=2 REQUESTS=2 BURIALS=3 BURIERS=2 CRASHES ABORTS=1 ROLLBACKS"},
	{name: "rejoin", what: "2 engines, and the first comes back under a new token; 2 burials",
		flags: "SESSIONS=3 SEED=2 EXTRA=1 TAKE=2 REQUESTS=1 BURIALS=2 CRASHES REJOINS"},
	{name: "lost answers", what: "1 engine whose claims and flushes overlap; 2 answers are lost",
		flags: "SESSIONS=1 SEED=2 EXTRA=1 TAKE=1 REQUESTS=2 BEATS LOSSES=2 CLAIMERS=2 FLUSHERS=2 RETRIES"},
	{name: "leave in doubt", what: "1 engine leaves with answers lost and a claim still on its way, or is buried meanwhile",
		flags: "SESSIONS=1 SEED=2 EXTRA=2 TAKE=1 REQUESTS=2 BURIALS=1 BEATS LOSSES=2 LEAVES ABORTS=1 CLAIMERS=2"},
	{name: "leave to another", what: "2 engines, either of which leaves, loses an answer or is buried",
		flags: "SESSIONS=2 SEED=1 EXTRA=1 TAKE=1 REQUESTS=1 BURIALS=1 BEATS LOSSES=1 LEAVES"},
	{name: "everything but leaving", what: "2 engines, 3 entries: a producer, a crash, a lost answer, a burial",
		flags: "SESSIONS=2 SEED=1 PRODUCERS=1 EXTRA=1 TAKE=2 REQUESTS=1 BURIALS=1 BEATS LOSSES=1 CRASHES"},

	{name: "permits", what: "2 engines and 2 permits, while what is unused is forgotten", permits: true,
		flags: "ENGINES=2 PERMITS=2 CALLS=5 TIDIES=1"},
	{name: "permits in doubt", what: "1 engine, of which 2 answers are lost and a request is cut off", permits: true,
		flags: "ENGINES=1 CALLERS=2 PERMITS=2 CALLS=4 LOSSES=2 ABORTS=1"},
	{name: "permits in doubt and forgotten", what: "2 engines, of which an answer is lost, while what is unused is forgotten", permits: true,
		flags: "ENGINES=2 CALLERS=2 CALLS=4 LOSSES=1 TIDIES=1"},
	{name: "permits of the buried", what: "2 engines that crash and are buried, while what is unused is forgotten", permits: true,
		flags: "ENGINES=2 CALLS=4 BURIALS=1 ABORTS=1 TIDIES=1"},
	{name: "order", what: "2 engines that crash and are buried, and two jobs in order, of which one comes again", permits: true,
		flags: "ENGINES=2 CALLS=5 ORDER BURIALS=1"},
	{name: "order in doubt", what: "2 engines, of which an answer is lost, and two jobs in order", permits: true,
		flags: "ENGINES=2 CALLERS=2 CALLS=4 ORDER LOSSES=1"},

	{name: "permits of 3 engines", what: "3 engines that crash and are buried, while what is unused is forgotten", permits: true, long: true,
		flags: "ENGINES=3 CALLS=4 BURIALS=1 TIDIES=1"},
	{name: "lost answers, more", what: "the same with 3 claims", long: true,
		flags: "SESSIONS=1 SEED=2 EXTRA=1 TAKE=1 REQUESTS=3 BEATS LOSSES=2 CLAIMERS=2 FLUSHERS=2 RETRIES"},
	{name: "burial among successors", what: "as burial, with a producer and room for two successors", long: true,
		flags: "SESSIONS=2 SEED=1 PRODUCERS=1 EXTRA=2 TAKE=2 REQUESTS=2 BURIALS=2 CRASHES"},
	{name: "leave to another, more", what: "the same with 3 entries", long: true,
		flags: "SESSIONS=2 SEED=2 EXTRA=1 TAKE=2 REQUESTS=1 BURIALS=1 BEATS LOSSES=1 LEAVES"},
	{name: "everything", what: "2 engines, 2 entries, everything that can happen to them", long: true,
		flags: "SESSIONS=2 SEED=1 EXTRA=1 TAKE=1 REQUESTS=1 BURIALS=1 BEATS LOSSES=1 LEAVES CRASHES"},
}

const (
	readers = "SESSIONS=2 SEED=0 PRODUCERS=2 EXTRA=0 TAKE=2 REQUESTS=2 NOISE ROLLBACKS CLAIMS_ONLY "
	more    = "SESSIONS=2 SEED=0 PRODUCERS=3 EXTRA=0 TAKE=2 REQUESTS=2 NOISE ROLLBACKS CLAIMS_ONLY "
	slow    = "SESSIONS=2 SEED=0 PRODUCERS=2 EACH=2 EXTRA=0 TAKE=1 REQUESTS=3 NOISE ROLLBACKS CLAIMS_ONLY "
	mortal  = "SESSIONS=2 SEED=2 EXTRA=1 TAKE=2 REQUESTS=2 BURIALS=2 CRASHES "
	doubts  = "SESSIONS=1 SEED=2 EXTRA=1 TAKE=1 REQUESTS=2 BEATS LOSSES=2 CLAIMERS=2 FLUSHERS=2 RETRIES "
	unused  = "ENGINES=2 CALLS=6 TIDIES=1 "
	doubted = "ENGINES=1 CALLERS=2 PERMITS=2 CALLS=4 LOSSES=1 TIDIES=1 "
	ordered = "ENGINES=2 CALLS=5 ORDER BURIALS=1 "
	leaving = "SESSIONS=2 SEED=2 EXTRA=1 TAKE=2 REQUESTS=2 BURIALS=1 BEATS LOSSES=1 LEAVES "
)

// Second lines of defence: each takes one line away, and the other holds.
var secondLines = []search{
	{name: "no lane lock, keyed claims", what: "the key of claims alone", flags: readers + "MUTANT_NO_LANE_LOCK"},
	{name: "frontier older than the lock, keyed claims", what: "the key of claims alone", flags: readers + "MUTANT_FRONTIER_BEFORE_LOCK"},
	{name: "finish without fence, keyed executions", what: "the key of executions alone", flags: mortal + "MUTANT_NO_FINISH_FENCE"},
	{name: "permits without fence", what: "what the buried hold counts for nothing", flags: "ENGINES=2 CALLS=4 BURIALS=1 ABORTS=1 TIDIES=1 MUTANT_NO_FENCE", permits: true},
}

// Mutants, each of which breaks a promise.
var mutants = []search{
	{name: "claim without fence", want: "abandoned", flags: mortal + "MUTANT_NO_CLAIM_FENCE"},
	{name: "no fence at all", want: "abandoned", flags: mortal + "MUTANT_NO_CLAIM_FENCE MUTANT_NO_FINISH_FENCE"},
	{name: "finish without fence, executions unkeyed", want: "posthumous", flags: mortal + "MUTANT_NO_FINISH_FENCE MUTANT_EXECUTIONS_UNKEYED"},
	{name: "fence in one statement", want: "abandoned", flags: mortal + "MUTANT_FENCE_ONE_STATEMENT"},
	{name: "fence after the lane lock", want: "laneStopped", flags: mortal + "MUTANT_FENCE_AFTER_LANE"},
	{name: "burial under one snapshot", want: "abandoned", flags: mortal + "MUTANT_BURY_ONE_SNAPSHOT"},
	{name: "burial without the lock", want: "abandoned", flags: mortal + "MUTANT_BURY_WITHOUT_LOCK"},
	{name: "leaving without burying", want: "abandoned", flags: leaving + "MUTANT_LEAVE_WITHOUT_BURYING"},
	{name: "beat upserts", want: "overlap", flags: leaving + "MUTANT_BEAT_UPSERTS"},

	{name: "snapshot after the rows", want: "lost", flags: readers + "MUTANT_SNAPSHOT_AFTER"},
	{name: "snapshot before the rows", want: "twice", flags: readers + "MUTANT_SNAPSHOT_BEFORE"},
	{name: "no pending", want: "lost", flags: readers + "MUTANT_NO_PENDING"},
	{name: "pending dropped without looking", want: "lost", flags: more + "MUTANT_PENDING_DROPPED"},
	{name: "pending dropped when cut short", want: "lost", flags: slow + "MUTANT_PENDING_CUT"},
	{name: "no lane lock, claims unkeyed", want: "twice", flags: readers + "MUTANT_NO_LANE_LOCK MUTANT_CLAIMS_UNKEYED"},
	{name: "frontier older than the lock, claims unkeyed", want: "twice", flags: readers + "MUTANT_FRONTIER_BEFORE_LOCK MUTANT_CLAIMS_UNKEYED"},

	{name: "executions without conflict clause", want: "refused", flags: doubts + "MUTANT_NO_CONFLICT_CLAUSE"},
	{name: "executions unkeyed", want: "twice", flags: doubts + "MUTANT_EXECUTIONS_UNKEYED"},
	{name: "successors of what was recorded before", want: "forked", flags: doubts + "MUTANT_SUCCESSORS_ALWAYS"},
	{name: "successors in a transaction of their own", want: "vanished", flags: doubts + "MUTANT_SUCCESSORS_APART"},
	{name: "requests numbered by their answers", want: "unseen", flags: doubts + "MUTANT_LOW_OF_KNOWN"},
	{name: "doubts forgotten too early", want: "unseen", flags: doubts + "MUTANT_FORGET"},
	{name: "what was asked for is strange", want: "overlap", flags: doubts + "MUTANT_STRANGE_ASKED"},
	{name: "no reconciling", want: "stuck", flags: doubts + "MUTANT_NO_RECONCILE"},

	{name: "used until the answer", want: "over", flags: unused + "MUTANT_GIVES_BACK_LATE", permits: true},
	{name: "a doubt without a state of its own", want: "unlike", flags: doubted + "MUTANT_NO_FORCE", permits: true},
	{name: "a doubt settled by nothing", want: "unlike", flags: doubted + "MUTANT_BUSY_SETTLES", permits: true},
	{name: "a gate without a state is as before", want: "unlike", flags: doubted + "MUTANT_EMPTY_AS_BEFORE", permits: true},
	{name: "a state follows any other", want: "unlike", flags: unused + "MUTANT_KEY_ALONE", permits: true},
	{name: "hidden behind newer states", want: "unlike", flags: unused + "MUTANT_HIDDEN", permits: true},
	{name: "forgotten while it is written", want: "unlike", flags: unused + "MUTANT_FORGETS_WITHOUT_LOCK", permits: true},
	{name: "a gate that begins again is the one before", want: "unlike", flags: "ENGINES=3 CALLS=3 BURIALS=1 TIDIES=1 MUTANT_NUMBER_ALONE", permits: true},
	{name: "a burial that writes no order", want: "disorder", flags: ordered + "MUTANT_BURIAL_WITHOUT_ORDER", permits: true},
	{name: "the permit before the outcome", want: "disorder", flags: ordered + "MUTANT_PERMIT_BEFORE_OUTCOME", permits: true},
	{name: "order read before permits", want: "disorder", flags: ordered + "MUTANT_ORDER_APART", permits: true},
	{name: "an answer from before the outcome", want: "disorder", flags: ordered + "MUTANT_STALE_ANSWER", permits: true},
}
