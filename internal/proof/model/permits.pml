/*
 * Permits in Promela: engines that ask for permits of one gate, use them and
 * give them back, are buried, and lose answers, while what is unused is
 * forgotten; and an order kept by a gate of one permit. Claim, finish and
 * burial are stint.pml's subject: here each is one step.
 * docs/design/model.md explains it.
 *
 * What a run consists of is set by definitions (see suite_test.go):
 *
 *   ENGINES    sessions in the roster
 *   PERMITS    how many the gate has
 *   CALLS      how many requests all engines together may send
 *   CALLERS    requests of one engine that the server may work on at once
 *   TIDIES     how often somebody looks for what can be forgotten
 *   BURIALS ABORTS LOSSES: as in stint.pml
 *   ORDER      there are two jobs, of which the first has to end before the second begins
 *   RETRIES    how often it comes again at most
 */

#ifndef ENGINES
#define ENGINES 2
#endif
#ifndef PERMITS
#define PERMITS 1
#endif
#ifndef CALLS
#define CALLS 4
#endif
#ifndef CALLERS
#define CALLERS 1
#endif
#ifndef TIDIES
#define TIDIES 0
#endif
#ifndef BURIALS
#define BURIALS 0
#endif
#ifndef ABORTS
#define ABORTS 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef RETRIES
#define RETRIES 1
#endif

#define SERVERS (ENGINES*CALLERS)
#define NOBODY  255

/* ---- The database, as committed ---- */

byte n;                 /* the newest state of the gate, 0 for none, */
byte made;              /* which of its beginnings that is of: rows tell it by the time when they were made, and of
                         * a gate that has none a sequence tells how often something was forgotten, */
byte oldest;            /* the oldest state that is still there, */
byte held[ENGINES];     /* and how many permits each engine holds by the newest one */
bool row[ENGINES];      /* the roster */
bool comesAgain;        /* the first job waits, or runs, for another time */

/* ---- What PostgreSQL keeps beside tables ---- */

byte writing[SERVERS];  /* the state that each is writing: others wait for its key */
byte shared[ENGINES];   /* the engine's lock: holders in shared mode, */
bool excl[ENGINES];     /* and whether it is held exclusively */
byte writers;           /* the lock of what is written, in shared mode, */
bool forgetting;        /* and by somebody who forgets */
byte begun;             /* how many beginnings there were */

/* ---- What clients know ---- */

mtype = { RUN, OVER };
mtype st[ENGINES] = RUN;    /* OVER: crashed, or learnt that it was buried */
byte hold[ENGINES];         /* permits that the engine may use, */
byte used[ENGINES];         /* and uses */
bool doubt[ENGINES];        /* the outcome of its last request is unknown */
byte waits[ENGINES];        /* the request that it waits for, 0 for none */

/* ---- The two jobs of an order, as claims would give them out ---- */

mtype = { NEW, RUNS, AGAIN, ENDED };
mtype first = NEW;
byte by = NOBODY;           /* who runs it */
bool second;                /* the second one has begun */
bool blocked[ENGINES];      /* what the engine holds is for what comes again only */
bool late[ENGINES];         /* it learnt that something comes again after it sent the request that it waits for */
byte retries = RETRIES;

byte calls = CALLS, tidies = TIDIES, burials = BURIALS, aborts = ABORTS, losses = LOSSES;

#ifdef BREADTH
#define scratch
#else
#define scratch hidden
#endif
scratch byte i_, sum_;
scratch byte over, unlike, disorder;

#define alive(s) (st[s] == RUN)

/* ---- Properties ---- */

/* After each step that changes any of it:
 *   over       more permits are used by engines of the roster than there are
 *   unlike     the store and an engine that has no doubt differ in what it holds: a permit that leaks
 *              is held for the store, and not for the engine
 *   disorder   the second job begins before the first has ended (see the client)
 */
inline invariant() {
	sum_ = 0; unlike = false; i_ = 0;
	do
	:: i_ < ENGINES ->
		if
		:: row[i_] -> sum_ = sum_ + used[i_]; unlike = unlike || (alive(i_) && waits[i_] == 0 && !doubt[i_] && hold[i_] != held[i_])
		:: else
		fi;
		i_++
	:: else -> break
	od;
	over = sum_ > PERMITS;
	assert(!over); assert(!unlike)
}

/* ends is how a session ends for its own process. Its handlers end with a process that crashes;
 * those of one that was only buried do not count, since it is not in the roster. */
inline ends(s) {
	st[s] = OVER; hold[s] = 0; used[s] = 0; doubt[s] = false; waits[s] = 0; blocked[s] = false; late[s] = false
}

/* ---- A request ---- */

#define me (s*CALLERS + c)

/* Whether somebody else is writing the state that has the key. */
#define writes(k,i) ((i) != me && writing[i] == (k))
#if SERVERS == 2
#define taken(k) (writes(k,0) || writes(k,1))
#endif
#if SERVERS == 3
#define taken(k) (writes(k,0) || writes(k,1) || writes(k,2))
#endif
#if SERVERS == 4
#define taken(k) (writes(k,0) || writes(k,1) || writes(k,2) || writes(k,3))
#endif
#define isThere(k) (n > 0 && (k) >= oldest && (k) <= n)

inline release() {
	if :: fenced -> shared[s]--; fenced = false :: else fi;
	if :: locked -> writers--; locked = false :: else fi;
	writing[me] = 0
}

#define stillWaits (alive(s) && waits[s] == c+1)

inline forget() {
	want = 0; keep = 0; keeps = false; forced = false; gone = false; busy = false; wrote = false; brd = false;
	rn = 0; rmade = 0; sn = 0; smade = 0; was = 0; mine = 0; i_ = 0;
	do :: i_ < ENGINES -> next[i_] = 0; i_++ :: else -> break od
}

/* The server answers, and the client takes note of it. */
inline answer() {
	d_step {
		if
		:: !stillWaits
		:: stillWaits && gone -> printf("engine %d: learns that it was buried\n", s+1); ends(s)
		:: stillWaits && !gone ->
			waits[s] = 0;
			if
#ifndef MUTANT_BUSY_SETTLES
			:: busy && doubt[s]
#endif
			:: else ->
				doubt[s] = false; hold[s] = mine;
#ifdef MUTANT_STALE_ANSWER
				blocked[s] = brd
#else
				blocked[s] = brd || late[s]
#endif
			fi;
			late[s] = false;
			printf("engine %d: may use %d\n", s+1, hold[s])
		fi;
		forget(); invariant(); skip
	}
}

/* What engine s asks for: to give back what it does not use, or one more. While the outcome of a
 * request is unknown, each one after it says what the engine relies on, and is written in any case:
 * what is still on its way was computed from an older state, and comes to nothing. */
proctype Caller(byte s; byte c) {
	byte want, keep, rn, rmade, sn, smade, was, mine;
	byte next[ENGINES];
	bool keeps, forced, gone, busy, brd, fenced, locked, wrote;

end0:	do
	:: d_step {
		alive(s) && waits[s] == 0 && calls > 0 && used[s] < hold[s] ->
		calls--; waits[s] = c+1; forced = doubt[s]; keeps = true;
#ifdef MUTANT_GIVES_BACK_LATE
		keep = hold[s]-1;
#else
		hold[s]--; keep = hold[s];
#endif
		printf("engine %d: gives back all but %d\n", s+1, keep)
	   };
	   goto asks
	:: d_step {
		alive(s) && waits[s] == 0 && calls > 0 && hold[s] < PERMITS ->
		calls--; waits[s] = c+1; forced = doubt[s]; keeps = doubt[s]; keep = hold[s]; want = 1;
		printf("engine %d: asks for one more than %d\n", s+1, hold[s])
	   };
	   goto asks
	:: d_step {
		alive(s) && waits[s] == 0 && calls > 0 && (doubt[s] || hold[s] > 0) ->
		calls--; waits[s] = c+1; forced = doubt[s]; keeps = true; keep = hold[s];
		printf("engine %d: asks what it holds\n", s+1)
	   };
	   goto asks
	od;

asks:
#ifdef MUTANT_NO_FORCE
	forced = false;
#endif
#ifdef MUTANT_ORDER_APART
	brd = comesAgain;
#endif
	atomic { /* one statement reads the state, the roster, and what comes again */
		rn = n; rmade = made; gone = !row[s]; was = held[s]; mine = held[s];
#ifndef MUTANT_ORDER_APART
		brd = comesAgain;
#endif
		sum_ = 0; i_ = 0;
		do
		:: i_ < ENGINES ->
			if
			:: i_ != s && row[i_] -> next[i_] = held[i_]; sum_ = sum_ + held[i_]
			:: else
			fi;
			i_++
		:: else -> break
		od;
		/* and the program decides */
		if :: keeps && keep < mine -> mine = keep :: else fi;
		if :: want == 1 && mine + sum_ < PERMITS -> mine++ :: else fi;
		next[s] = mine; want = 0; keep = 0; keeps = false
	};
	if
	:: gone || (!forced && mine == was) -> answer(); goto end0
	:: else
	fi;
	/* A client that has given up, or ended, sends nothing more. */
	if
	:: d_step { !stillWaits -> forget(); skip }; goto end0
	:: stillWaits
	fi;
#ifndef MUTANT_NO_FENCE
	atomic { !excl[s] -> shared[s]++; fenced = true };
	gone = !row[s];
#endif
	if
	:: d_step { gone -> release(); skip }; answer(); goto end0
	:: !gone
	fi;
	atomic { !forgetting -> writers++; locked = true };
	d_step { sn = n; smade = made }; /* the snapshot of the statement that compares and inserts, */
	atomic { /* which waits for who is writing the key */
		!taken(rn+1);
#ifdef MUTANT_NUMBER_ALONE
		wrote = sn == rn && !isThere(rn+1);
#else
#ifdef MUTANT_KEY_ALONE
		wrote = !isThere(rn+1);
#else
		wrote = sn == rn && smade == rmade && !isThere(rn+1);
#endif
#endif
		if :: wrote -> writing[me] = rn+1 :: else -> busy = true; mine = was fi
	};
#ifndef MUTANT_HIDDEN /* the next statement sees whether it stands behind others, of which the one with this key is gone */
	d_step { if :: wrote && n > rn -> wrote = false; writing[me] = 0; busy = true; mine = was :: else fi };
#endif
	if
	:: d_step { wrote ->
		if
		:: rn+1 > n -> /* or another one hides it */
			if :: n == 0 -> begun++; made = begun; oldest = 1 :: else fi; /* never the same */
			n = rn+1; i_ = 0;
			do :: i_ < ENGINES -> held[i_] = next[i_]; i_++ :: else -> break od
		:: else
		fi;
		printf("engine %d: state %d says that it holds %d\n", s+1, rn+1, mine);
		release()
	   }
	:: d_step { !wrote -> release(); skip }
	:: d_step { aborts > 0 && wrote -> aborts--; release(); printf("engine %d: a request is cut off\n", s+1);
		if :: stillWaits -> waits[s] = 0; doubt[s] = true; late[s] = false :: else fi; forget(); invariant(); skip }; goto end0
	fi;
	answer(); goto end0
}

/* ---- Who forgets ---- */

proctype Tidier() {
	byte tn, tmade;
	bool idle;

end0:	do
	:: d_step {
		tidies > 0 && n > 0 -> tidies--;
		tn = n; tmade = made; idle = true; i_ = 0;
		oldest = n; /* what is superseded needs no lock */
		do :: i_ < ENGINES -> idle = idle && !(row[i_] && held[i_] > 0); i_++ :: else -> break od
	   };
	   if
	   :: d_step { !idle -> tn = 0; tmade = 0 }
	   :: idle ->
#ifndef MUTANT_FORGETS_WITHOUT_LOCK
		atomic { writers == 0 && !forgetting -> forgetting = true };
#endif
		d_step {
			if
			:: n == tn && made == tmade ->
				printf("the gate is forgotten at state %d\n", n);
				n = 0; oldest = 0; i_ = 0;
#ifdef MUTANT_EMPTY_AS_BEFORE
				made = 0;
#else
				begun++; made = begun;
#endif
				do :: i_ < ENGINES -> held[i_] = 0; i_++ :: else -> break od
			:: else
			fi;
			forgetting = false; tn = 0; tmade = 0; idle = false; invariant()
		}
	   fi
	od
}

/* ---- Burial ---- */

/* It writes what comes again in the transaction that deletes the row, behind the lock. */
proctype Burier(byte s) {
end0:	do
	:: d_step {
		burials > 0 && row[s] && !excl[s] && shared[s] == 0 -> burials--;
		printf("engine %d is buried\n", s+1);
		row[s] = false;
		if
		:: first == RUNS && by == s ->
			first = AGAIN; by = NOBODY;
#ifndef MUTANT_BURIAL_WITHOUT_ORDER
			comesAgain = true
#endif
		:: else
		fi;
		invariant()
	   }
	od
}

/* ---- The process around a session ---- */

proctype Client(byte s) {
	bool end; /* the handler of the first job has returned, and its outcome is to be recorded */
	bool again, told;

end0:	do
#ifndef ORDER
	:: d_step { alive(s) && used[s] < hold[s] -> used[s]++; printf("engine %d: a job begins\n", s+1); invariant() }
	:: d_step { alive(s) && used[s] > 0 -> used[s]--; printf("engine %d: a job ends\n", s+1) }
#else
	:: d_step {
		alive(s) && row[s] && used[s] < hold[s] && ((first == NEW && !blocked[s]) || first == AGAIN) ->
		first = RUNS; by = s; used[s]++; printf("engine %d: the first job begins\n", s+1); invariant()
	   }
	:: d_step {
		alive(s) && row[s] && used[s] < hold[s] && !blocked[s] && !second && first != NEW ->
		second = true; used[s]++; printf("engine %d: the second job begins\n", s+1);
		disorder = first != ENDED; assert(!disorder); invariant()
	   }
	:: d_step { alive(s) && first == RUNS && by == s && !told ->
#ifdef MUTANT_PERMIT_BEFORE_OUTCOME
		used[s]--;
#endif
		end = true; again = retries > 0; told = true }
	:: d_step { alive(s) && end && row[s] -> /* a transaction; the engine asks until it has the answer */
		if
		:: again -> retries--; first = AGAIN; comesAgain = true; printf("engine %d: the first job comes again\n", s+1)
		:: else -> first = ENDED; comesAgain = false; printf("engine %d: the first job ends\n", s+1)
		fi;
		by = NOBODY; end = false
	   }
	:: d_step { alive(s) && told && !end ->
		if :: again -> blocked[s] = true; late[s] = waits[s] != 0 :: else fi;
#ifndef MUTANT_PERMIT_BEFORE_OUTCOME
		used[s]--;
#endif
		told = false; again = false
	   }
#endif
	:: d_step { alive(s) && losses > 0 && waits[s] != 0 -> losses--; waits[s] = 0; doubt[s] = true; late[s] = false; printf("engine %d: gives up waiting\n", s+1); invariant() }
#if BURIALS > 0
	:: d_step { alive(s) && row[s] -> printf("engine %d: crashes, or fences itself\n", s+1); ends(s); end = false; told = false; again = false }
#endif
	od
}

init {
	byte i, j;
	atomic {
		do
		:: i < ENGINES ->
			row[i] = true; run Client(i); j = 0;
			do :: j < CALLERS -> run Caller(i, j); j++ :: else -> break od;
#if BURIALS > 0
			run Burier(i);
#endif
			i++
		:: else -> break
		od;
#if TIDIES > 0
		run Tidier();
#endif
		i = 0; j = 0
	}
}
