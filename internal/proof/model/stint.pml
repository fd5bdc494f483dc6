/*
 * The heart of stint in Promela: producers, claim, finish, beat, fence, bury,
 * reconcile, leave and rejoin on a database in READ COMMITTED, where each
 * statement has a snapshot of its own. docs/design/model.md explains it.
 *
 * One step of this model is one statement, or less. Where a comment says that
 * two statements are one step, it says why nobody can tell.
 *
 * What a run consists of is set by definitions (see suite_test.go):
 *
 *   SESSIONS   memberships in the roster; each joins at any time, or with REJOINS the last when the first is over
 *   SEED       entries that stand in the log at the beginning
 *   PRODUCERS  transactions that append EACH entries and commit or roll back
 *   EXTRA      room for successors; an attempt without room for one ends its job
 *   TAKE       most entries of a claim
 *   REQUESTS   most claims that a session asks for
 *   CLAIMERS   claims of one session that the server may work on at once
 *   FLUSHERS   the same for flushes
 *   BURIALS    how many burials others may attempt
 *   BURIERS    how many of them at once may be about the same engine
 *   ABORTS     how many transactions the server may end before their commit
 *   LOSSES     how many answers may be lost, or given up waiting for
 *   NOISE      transactions elsewhere in the cluster end at any time
 *   ROLLBACKS RETRIES CRASHES BEATS LEAVES: what may happen at all
 */

#ifndef SESSIONS
#define SESSIONS 2
#endif
#ifndef SEED
#define SEED 2
#endif
#ifndef PRODUCERS
#define PRODUCERS 0
#endif
#ifndef EACH
#define EACH 1
#endif
#ifndef EXTRA
#define EXTRA 1
#endif
#ifndef TAKE
#define TAKE 2
#endif
#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef CLAIMERS
#define CLAIMERS 1
#endif
#ifndef BURIALS
#define BURIALS 0
#endif
#ifndef FLUSHERS
#define FLUSHERS 1
#endif
#ifndef BURIERS
#define BURIERS 1
#endif
#ifndef ABORTS
#define ABORTS 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif

#define JOBS    (SEED + PRODUCERS*EACH)  /* a job is known by its first entry */
#define ENTRIES (JOBS + EXTRA)           /* at most 8 */
#define XIDS    (1 + PRODUCERS + EXTRA)  /* at most 8: who appends draws a number */
#define BIT(i)  (1 << (i))
#define NOBODY  255
#define SLOT(s,k) ((s)*(REQUESTS+1) + (k))

/* ---- The database, as committed ---- */

byte here;              /* set of entries */
byte xid[ENTRIES];      /* the transaction that appended each; a position is the index plus one */
byte job[ENTRIES];      /* the job that each belongs to */
byte owner[ENTRIES];    /* session + 1 whose claim took it */
byte serial[ENTRIES];   /* and that claim's number among the session's requests */
byte done;              /* set of entries that have an execution */
byte final;             /* those of them whose execution is final */
byte n;                 /* the lane's newest claim, and its frontier: */
byte fx, fp, pend;      /* position and set of pending transactions, */
byte pp[XIDS];          /* with the last position taken of each */
bool row[SESSIONS];     /* the roster */
byte low[SESSIONS];     /* the bound that the last beat gave */

/* ---- What PostgreSQL keeps beside tables ---- */

byte drawn = 1;         /* next transaction number; 0 wrote the seed */
byte xmax = 1;          /* one past the highest that has ended, as snapshots see it */
byte inprog;            /* set of transactions in progress */
byte writing;           /* entries whose execution is inserted and not committed: others wait for it */
byte nextpos = JOBS;    /* the sequence */
byte lane = NOBODY;     /* who holds the lane's lock */
byte shared[SESSIONS];  /* the engine's lock: holders in shared mode, */
bool excl[SESSIONS];    /* and whether it is held exclusively */

/* ---- What clients know ---- */

mtype = { OUT, RUN, STOP, OVER };
mtype st[SESSIONS] = OUT;   /* OVER: left, crashed, fenced itself, or learnt that it was buried */

#define NONE   0            /* nothing is known: never asked, or all is recorded */
#define ASKED  1            /* on its way */
#define KNOWN  2            /* answered: its entries are in the hand */
#define DOUBT  3            /* the answer was lost */
byte hand[SESSIONS*(REQUESTS+1)];
bool live[SESSIONS*(REQUESTS+1)]; /* the server still works on the request (no client knows this) */
byte asked[SESSIONS];       /* the last number given out */
byte ready[SESSIONS], running[SESSIONS], ended[SESSIONS], again[SESSIONS]; /* sets of entries */
byte flush[SESSIONS];       /* the flush that the session waits for, 0 for none */

byte burials = BURIALS, aborts = ABORTS, losses = LOSSES;

/* Scratch of single steps: no part of the state. A search by breadth, which
 * finds the shortest way to an error, does not know hidden variables. */
#ifdef BREADTH
#define scratch
#else
#define scratch hidden
#endif
scratch byte i_, j_, x_, room_, last_, got_, cnt_;
scratch byte lost, abandoned, unseen, vanished, forked, twice, posthumous, refused, laneStopped, overlap, stuck;

/* ---- What can be seen at a glance ---- */

/* reach: the frontier lets a claim take it; CAN: and it is there. */
#define reach(e) (xid[e] > fx || (xid[e] == fx && (e)+1 > fp) || ((pend & BIT(xid[e])) && (e)+1 > pp[xid[e]]))
#define CAN(e)   ((here & BIT(e)) && reach(e))

/* HELD: the store says that session s holds it, as a beat or a burial asks.
 * STRANGE: and the session does not know it. */
#define OPEN(e)      ((here & BIT(e)) && !(done & BIT(e)))
#define HELD(e,s,l)  (OPEN(e) && owner[e] == (s)+1 && serial[e] >= (l))
#ifdef MUTANT_STRANGE_ASKED /* a request is noted when its answer comes */
#define STRANGE(e,s) (hand[SLOT(s,serial[e])] != KNOWN)
#else
#define STRANGE(e,s) (hand[SLOT(s,serial[e])] == NONE || hand[SLOT(s,serial[e])] == DOUBT)
#endif
#define ODD(e,s)     (HELD(e,s,low[s]) && STRANGE(e,s))

#if ENTRIES > 5
#define more(M)    || M(5)
#define more2(M,s) || M(5,s)
#else
#define more(M)
#define more2(M,s)
#endif
#if ENTRIES == 2
#define any(M)    (M(0) || M(1))
#define any2(M,s) (M(0,s) || M(1,s))
#endif
#if ENTRIES == 3
#define any(M)    (M(0) || M(1) || M(2))
#define any2(M,s) (M(0,s) || M(1,s) || M(2,s))
#endif
#if ENTRIES == 4
#define any(M)    (M(0) || M(1) || M(2) || M(3))
#define any2(M,s) (M(0,s) || M(1,s) || M(2,s) || M(3,s))
#endif
#if ENTRIES >= 5
#define any(M)    (M(0) || M(1) || M(2) || M(3) || M(4) more(M))
#define any2(M,s) (M(0,s) || M(1,s) || M(2,s) || M(3,s) || M(4,s) more2(M,s))
#endif

/* The bound that a session promises: no request below it is open. */
#ifdef MUTANT_LOW_OF_KNOWN /* as if a request were numbered when its answer comes */
#define open(s,k) (hand[SLOT(s,k)] == KNOWN)
#else
#define open(s,k) (hand[SLOT(s,k)] != NONE)
#endif
#if REQUESTS == 1
#define lowOf(s) (open(s,1) -> 1 : asked[s]+1)
#endif
#if REQUESTS == 2
#define lowOf(s) (open(s,1) -> 1 : (open(s,2) -> 2 : asked[s]+1))
#endif
#if REQUESTS == 3
#define lowOf(s) (open(s,1) -> 1 : (open(s,2) -> 2 : (open(s,3) -> 3 : asked[s]+1)))
#endif

#define alive(s) (st[s] == RUN || st[s] == STOP)

/* ---- Properties ---- */

/* The invariant over what is committed; every step that commits ends with it.
 *   lost       an entry is behind the frontier, not pending, and in no claim
 *   abandoned  it is in a claim whose engine is not in the roster
 *   unseen     its engine does not know the claim, and promised not to ask for it
 *   vanished   a committed job has neither an entry to run nor a final execution
 *   forked     it has more than one of them
 */
inline invariant() {
	lost = false; abandoned = false; unseen = false; vanished = false; forked = false;
	i_ = 0;
	do
	:: i_ < ENTRIES ->
		if
		:: OPEN(i_) ->
			if
			:: owner[i_] == 0 -> lost = lost || !reach(i_)
			:: else ->
				j_ = owner[i_]-1;
				abandoned = abandoned || !row[j_];
				unseen = unseen || (alive(j_) && STRANGE(i_,j_) && serial[i_] < low[j_])
			fi
		:: else
		fi;
		if
		:: i_ < JOBS && (here & BIT(i_)) ->
			cnt_ = 0; j_ = i_;
			do
			:: j_ < ENTRIES ->
				if
				:: job[j_] == i_ && (OPEN(j_) || (done & final & BIT(j_))) -> cnt_++
				:: else
				fi;
				j_++
			:: else -> break
			od;
			vanished = vanished || cnt_ == 0;
			forked = forked || cnt_ > 1
		:: else
		fi;
		i_++
	:: else -> break
	od;
	assert(!lost); assert(!abandoned); assert(!unseen); assert(!vanished); assert(!forked)
}

/* ---- Transactions ---- */

#ifdef NOISE
#define others
#else
#define others xmax = drawn /* something later has always ended: the hardest case for pending */
#endif

inline draw(x) {
	x = drawn; drawn++; inprog = inprog | BIT(x); assert(drawn <= XIDS);
	others
}

inline end(x) {
	inprog = inprog & ~BIT(x);
	if :: xmax < x+1 -> xmax = x+1 :: else fi;
	x = 0
}

/* The fence: the engine's lock, shared; then, in the next statement, its row.
 * Whoever waits here for a burial must not hold the lane. */
inline fence(s) {
#ifdef MUTANT_FENCE_ONE_STATEMENT
	gone = !row[s];
#endif
	atomic {
		if
		:: excl[s] && lane == _pid -> laneStopped = true; assert(!laneStopped)
		:: !excl[s] -> shared[s]++; fenced = true
		fi
	};
#ifndef MUTANT_FENCE_ONE_STATEMENT
	gone = !row[s];
#endif
}

inline release(s) {
	if :: fenced -> shared[s]--; fenced = false :: else fi;
	if :: lane == _pid -> lane = NOBODY :: else fi
}

/* over is how a session ends for its own process, which may not know that it
 * is dead. What a handler still does, it does. */
inline over(s) {
	ready[s] = 0; ended[s] = 0; again[s] = 0; flush[s] = 0; i_ = 0;
	asked[s] = 0;
	if :: !row[s] -> running[s] = 0 :: else fi;
	do :: i_ <= REQUESTS -> hand[SLOT(s,i_)] = NONE; i_++ :: else -> break od;
	st[s] = OVER
}

/* Write executions for the set b of entries, and successors for those in a:
 * two statements in one step, since their rows are invisible until the commit,
 * the first draws the transaction's number, and positions are compared
 * within a transaction only. It waits where another transaction is writing the
 * same execution. What is new is left in b, new entries in a. */
inline write(b, a, x) {
	d_step {
		(b & writing) == 0 ->
#ifdef MUTANT_NO_CONFLICT_CLAUSE
		refused = (b & done) != 0; assert(!refused);
#endif
#ifdef MUTANT_SUCCESSORS_ALWAYS
		b = b & ~done;
#else
#ifndef MUTANT_EXECUTIONS_UNKEYED
		b = b & ~done; a = a & b;
#endif
#endif
		writing = writing | b; final = final | b;
		got_ = 0; i_ = 0;
		do
		:: i_ < JOBS+EXTRA ->
			if
			:: (a & BIT(i_)) && nextpos < ENTRIES ->
				if :: b & BIT(i_) -> final = final & ~BIT(i_) :: else fi;
#ifndef MUTANT_SUCCESSORS_APART /* in a transaction of their own, for which it did not live long enough */
				if :: got_ == 0 -> draw(x) :: else fi;
				xid[nextpos] = x; job[nextpos] = job[i_];
				got_ = got_ | BIT(nextpos); nextpos++
#else
				skip
#endif
			:: else
			fi;
			i_++
		:: else -> break
		od;
		a = got_; got_ = 0
	}
}

inline commit(b, a, x) {
#ifndef MUTANT_NO_FINISH_FENCE /* which is to be found by its own mark */
	twice = (b & done) != 0; assert(!twice);
#endif
	done = done | b; writing = writing & ~b; here = here | a;
	if :: a != 0 -> end(x) :: else fi;
	b = 0; a = 0
}

inline rollback(b, a, x) {
	writing = writing & ~b; final = final & ~b;
	if :: a != 0 -> end(x) :: else fi;
	b = 0; a = 0
}

/* ---- Producers ---- */

/* A producer's rows are invisible until its commit, so all of its inserts are
 * one step: the first, which draws the number. */
proctype Producer(byte p) {
	byte x;
	d_step {
		draw(x); i_ = 0;
		do :: i_ < EACH -> xid[SEED+p*EACH+i_] = x; i_++ :: else -> break od;
		printf("producer %d: begins transaction %d\n", p+1, x)
	}
	if
	:: d_step {
		printf("producer %d: commits transaction %d\n", p+1, x);
		i_ = 0;
		do :: i_ < EACH -> here = here | BIT(SEED+p*EACH+i_); i_++ :: else -> break od;
		end(x); invariant()
	}
#ifdef ROLLBACKS
	:: d_step { printf("producer %d: rolls back transaction %d\n", p+1, x); end(x) }
#endif
	fi
}

/* Other transactions of the cluster, which append nothing here, draw numbers
 * in between and end. */
proctype Noise() {
end0:	do
	:: d_step { xmax < drawn -> xmax++; printf("cluster: a transaction below %d ends\n", xmax) }
	od
}

/* ---- Claim ---- */

inline readFrontier() {
	d_step {
		mine = n+1; lfx = fx; lfp = fp; lpend = pend; i_ = 0;
		do :: i_ < XIDS -> lpp[i_] = pp[i_]; i_++ :: else -> break od
	}
}

inline snapshot() { sx = xmax; sip = inprog & (BIT(xmax)-1) }

/* Late rows, then fresh ones, TAKE in all. */
inline takeRows() {
	room_ = TAKE; tk = 0; last_ = NOBODY; x_ = 0;
	do
	:: x_ < XIDS ->
		if
		:: (lpend & BIT(x_)) && !(inprog & BIT(x_)) ->
			i_ = 0;
			do
			:: i_ < ENTRIES ->
				if
				:: room_ > 0 && (here & BIT(i_)) && xid[i_] == x_ && i_+1 > lpp[x_] ->
					tk = tk | BIT(i_); room_--; last_ = x_; lpp[x_] = i_+1
				:: else
				fi;
				i_++
			:: else -> break
			od
		:: else
		fi;
		x_++
	:: else -> break
	od;
	if :: room_ > 0 -> last_ = NOBODY :: else fi;
	cut = last_; /* the last transaction of a batch that late rows filled */
	nfx = lfx; nfp = lfp; x_ = lfx;
	do
	:: x_ < XIDS ->
		i_ = 0;
		do
		:: i_ < ENTRIES ->
			if
			:: room_ > 0 && (here & BIT(i_)) && xid[i_] == x_ && (x_ > lfx || i_+1 > lfp) ->
				tk = tk | BIT(i_); room_--; nfx = x_; nfp = i_+1
			:: else
			fi;
			i_++
		:: else -> break
		od;
		x_++
	:: else -> break
	od;
	few = room_ > 0
}

#define kept(x) ((sip & BIT(x)) || (cut != NOBODY && x >= cut))
#ifdef MUTANT_PENDING_DROPPED /* looked at once, whether it was visible or not */
#undef kept
#define kept(x) (cut != NOBODY && x >= cut)
#endif
#ifdef MUTANT_PENDING_CUT /* a batch that late rows filled drops the rest */
#undef kept
#define kept(x) (sip & BIT(x))
#endif

inline advance() {
	if
	:: few -> nfx = sx; nfp = 0
	:: else
	fi;
	got_ = 0; x_ = 0;
	do
	:: x_ < XIDS ->
		if
		:: (lpend & BIT(x_)) && kept(x_) -> got_ = got_ | BIT(x_)
#ifndef MUTANT_NO_PENDING
		:: !((lpend & BIT(x_)) && kept(x_)) && (sip & BIT(x_)) && x_ >= lfx && x_ < nfx -> got_ = got_ | BIT(x_); lpp[x_] = 0
#endif
		:: else -> lpp[x_] = 0
		fi;
		x_++
	:: else -> break
	od;
	lpend = got_; got_ = 0; lfx = 0; lfp = 0; sx = 0; sip = 0; cut = 0; few = false
}

inline claimed() { /* the answer, and what nobody needs any more */
	live[SLOT(s,k)] = false;
	if
	:: alive(s) && gone -> printf("engine %d: learns that it was buried\n", s+1); over(s)
	:: alive(s) && !gone && hand[SLOT(s,k)] == ASKED ->
		hand[SLOT(s,k)] = (tk != 0 -> KNOWN : NONE);
		if
		:: st[s] == RUN -> ready[s] = ready[s] | tk
		:: else -> ended[s] = ended[s] | tk; again[s] = again[s] | tk
		fi;
		printf("engine %d: has the answer to claim %d\n", s+1, k)
	:: else
	fi;
	k = 0; tk = 0; gone = false
}

inline forgetFrontier() {
	mine = 0; lfx = 0; lfp = 0; lpend = 0; nfx = 0; nfp = 0; i_ = 0;
	do :: i_ < XIDS -> lpp[i_] = 0; i_++ :: else -> break od
}

/* A request, and the server's work on it. The server does not know whether
 * its client still lives: what was sent goes on to its commit. */
proctype Claimer(byte s) {
	byte k, tk, mine, lfx, lfp, lpend, nfx, nfp, sx, sip, cut;
	byte lpp[XIDS];
	bool few, gone, fenced;

end0:	do
	:: d_step {
		st[s] == RUN && asked[s] < REQUESTS && hand[SLOT(s,asked[s])] != ASKED && any(CAN) ->
		asked[s]++; k = asked[s]; hand[SLOT(s,k)] = ASKED; live[SLOT(s,k)] = true;
		printf("engine %d: sends claim %d\n", s+1, k)
	};
#ifdef MUTANT_FENCE_AFTER_LANE
	atomic { lane == NOBODY -> lane = _pid };
	fence(s);
#else
#ifndef MUTANT_NO_CLAIM_FENCE
	fence(s);
#endif
#ifdef MUTANT_FRONTIER_BEFORE_LOCK
	readFrontier();
#endif
#ifndef MUTANT_NO_LANE_LOCK
	atomic { gone || lane == NOBODY -> if :: !gone -> lane = _pid :: else fi };
#endif
#endif
	if
	:: !gone ->
#ifndef MUTANT_FRONTIER_BEFORE_LOCK
		readFrontier();
#endif
#ifdef MUTANT_SNAPSHOT_BEFORE
		d_step { snapshot() };
		d_step { takeRows(); advance() };
#else
#ifdef MUTANT_SNAPSHOT_AFTER
		d_step { takeRows() };
		d_step { snapshot(); advance() };
#else
		d_step { snapshot(); takeRows(); advance() };
#endif
#endif
		/* Its row is invisible until the commit: writing it is no step. */
		if
		:: d_step {
#ifndef MUTANT_CLAIMS_UNKEYED
			tk != 0 && mine == n+1 ->
#else
			tk != 0 ->
#endif
			i_ = 0; twice = false;
			do
			:: i_ < ENTRIES ->
				if
				:: tk & BIT(i_) -> twice = twice || owner[i_] != 0; owner[i_] = s+1; serial[i_] = k
				:: else
				fi;
				i_++
			:: else -> break
			od;
			printf("engine %d: claim %d takes the set %d, frontier (%d,%d), pending %d\n", s+1, k, tk, nfx, nfp, lpend);
			assert(!twice);
			n = mine; fx = nfx; fp = nfp; pend = lpend; i_ = 0;
			do :: i_ < XIDS -> pp[i_] = lpp[i_]; i_++ :: else -> break od;
			release(s); forgetFrontier(); invariant()
		   }
		:: d_step {
			tk == 0 || mine != n+1 -> /* nothing to take, or the key was taken */
			release(s); forgetFrontier(); tk = 0
		   }
		:: d_step {
			tk != 0 && aborts > 0 -> aborts--;
			printf("engine %d: claim %d is cut off\n", s+1, k);
			if :: hand[SLOT(s,k)] == ASKED -> hand[SLOT(s,k)] = DOUBT :: else fi;
			release(s); forgetFrontier(); tk = 0
		   }
		fi
	:: gone -> d_step { release(s); forgetFrontier(); tk = 0 }
	fi;
	d_step { claimed() }
	od
}

/* ---- Finish ---- */

inline recorded(b) { /* what the client knows to be recorded */
	ended[s] = ended[s] & ~b; again[s] = again[s] & ~b; i_ = 1;
	do
	:: i_ <= REQUESTS ->
		if
		:: hand[SLOT(s,i_)] == KNOWN ->
			got_ = 0; j_ = 0;
			do
			:: j_ < ENTRIES ->
				if
				:: ((ready[s] | running[s] | ended[s]) & BIT(j_)) && serial[j_] == i_ -> got_ = 1
				:: else
				fi;
				j_++
			:: else -> break
			od;
			if :: got_ == 0 -> hand[SLOT(s,i_)] = NONE :: else fi
		:: else
		fi;
		i_++
	:: else -> break
	od;
	got_ = 0
}

/* A flush, and the server's work on it. When nobody waits for the answer any
 * more, the batch is sent again, beside this one. */
proctype Flusher(byte s) {
	byte all, b, a, x;
	bool gone, fenced;

end0:	do
	:: d_step {
		alive(s) && ended[s] != 0 && flush[s] == 0 ->
		all = ended[s]; b = all; a = all & again[s]; flush[s] = _pid;
		printf("engine %d: sends outcomes of the set %d\n", s+1, all)
	};
#ifndef MUTANT_NO_FINISH_FENCE
	fence(s);
#endif
	if
	:: !gone ->
		write(b, a, x);
		if
		:: d_step {
			printf("engine %d: outcomes of the set %d are recorded, with the entries %d\n", s+1, b, a);
			posthumous = b != 0 && !row[s]; assert(!posthumous);
			commit(b, a, x); release(s); invariant()
		   }
		:: d_step {
			aborts > 0 -> aborts--;
			printf("engine %d: a flush is cut off\n", s+1);
			rollback(b, a, x); release(s);
			if :: flush[s] == _pid -> flush[s] = 0 :: else fi;
			all = 0
		   }
		fi
	:: gone -> d_step { release(s); b = 0; a = 0 }
	fi;
	d_step {
		if
		:: alive(s) && gone -> printf("engine %d: learns that it was buried\n", s+1); over(s)
		:: alive(s) && !gone && flush[s] == _pid && all != 0 -> flush[s] = 0; recorded(all)
		:: else
		fi;
		all = 0; gone = false
	}
	od
}

/* ---- Beat and reconcile ---- */

#ifdef MUTANT_NO_RECONCILE
#define oddities(s) false
#else
#define oddities(s) any2(ODD,s)
#endif

/* A beat that would change nothing and find nothing is left out. */
proctype Beater(byte s) {
	byte l, k, h, all, b, a, x;
	bool gone, fenced;

end0:	do
	:: d_step { /* the bound is taken before the beat is sent */
		alive(s) && (lowOf(s) != low[s] || !row[s] || oddities(s)) -> l = lowOf(s)
	};
	d_step {
#ifdef MUTANT_BEAT_UPSERTS
		row[s] = true;
#endif
		gone = !row[s];
		if :: row[s] && l > low[s] -> low[s] = l; printf("engine %d: beats, and promises %d\n", s+1, l) :: else fi;
		if :: row[s] -> invariant() :: else fi
	};
	if
	:: d_step { gone -> if :: alive(s) -> printf("engine %d: learns that it was buried\n", s+1); over(s) :: else fi; gone = false; l = 0 }
	:: !gone ->
#ifdef MUTANT_NO_RECONCILE
		l = 0
#else
		d_step { /* a statement */
			h = 0; i_ = 0;
			do :: i_ < ENTRIES -> if :: HELD(i_,s,l) -> h = h | BIT(i_) :: else fi; i_++ :: else -> break od;
			l = 0
		};
		d_step { /* and what the client makes of it, later: one claim that is strange */
			k = 0; i_ = 0;
			do
			:: i_ < ENTRIES ->
				if
				:: (h & BIT(i_)) && alive(s) && STRANGE(i_,s) && (k == 0 || serial[i_] == k) -> k = serial[i_]; all = all | BIT(i_)
				:: else
				fi;
				i_++
			:: else -> break
			od;
			h = 0; b = all; a = all
		};
		if
		:: all != 0 ->
			fence(s);
			if
			:: !gone ->
				write(b, a, x);
				if
				:: d_step {
					printf("engine %d: hands back the set %d of claim %d\n", s+1, b, k);
					posthumous = b != 0 && !row[s]; assert(!posthumous);
					commit(b, a, x); release(s); invariant()
				   }
				:: d_step { aborts > 0 -> aborts--; rollback(b, a, x); release(s); k = 0 }
				fi
			:: gone -> d_step { release(s); b = 0; a = 0 }
			fi;
			if
			:: d_step { /* settled */
				if
				:: alive(s) && gone -> over(s)
				:: alive(s) && !gone && k != 0 -> hand[SLOT(s,k)] = NONE
				:: else
				fi;
				k = 0; all = 0; gone = false
			   }
			:: d_step { losses > 0 && !gone -> losses--; k = 0; all = 0 }
			fi
		:: all == 0
		fi
#endif
	fi
	od
}

/* ---- Burial ---- */

/* A burial reads what the last beat allowed to be open. Without a failover
 * that is all: the sweep that looks through the rest behind it is left out, and
 * must find nothing. (The bound only grows; the latest one is the hardest.) */
inline readHeld(s) {
	d_step {
		b = 0; i_ = 0;
		do :: i_ < ENTRIES -> if :: HELD(i_,s,low[s]) -> b = b | BIT(i_) :: else fi; i_++ :: else -> break od;
		a = b
	}
}

/* bury begins behind the lock. The deletion of the row is invisible until the
 * commit, and the lock keeps others from deleting it: it is one step with the
 * reading of the beat. */
inline bury(s) {
	gone = !row[s];
	if
	:: !gone ->
#ifndef MUTANT_BURY_ONE_SNAPSHOT
		readHeld(s);
#endif
		write(b, a, x);
		if
		:: d_step {
			row[s] = false; excl[s] = false;
			printf("burial of engine %d: concludes the set %d, with the entries %d\n", s+1, b, a);
			commit(b, a, x); invariant();
			low[s] = 0; i_ = 0; /* what nobody will ask for again is made equal */
			if :: st[s] == OVER -> running[s] = 0 :: else fi;
			do :: i_ < ENTRIES -> if :: owner[i_] == s+1 && st[s] == OVER -> serial[i_] = 0 :: else fi; i_++ :: else -> break od;
			skip
		   }
		:: d_step {
			aborts > 0 -> aborts--;
			printf("burial of engine %d: is cut off\n", s+1);
			gone = true; rollback(b, a, x); excl[s] = false
		   }
		fi
	:: gone -> excl[s] = false
	fi
}

/* Somebody who believes that an engine is dead. Whether its beat is old is
 * left open: a beat may look old at any time. */
proctype Burier(byte s) {
	byte b, a, x;
	bool gone;

end0:	do
	:: d_step { burials > 0 && row[s] -> burials--; printf("burial of engine %d: somebody believes that it is dead\n", s+1) };
#ifdef MUTANT_BURY_ONE_SNAPSHOT
	readHeld(s);
#endif
	/* It never queues for the lock: to try again later is to wait here. */
#ifdef MUTANT_BURY_WITHOUT_LOCK
	d_step { printf("burial of engine %d: begins\n", s+1) };
#else
	d_step { !excl[s] && shared[s] == 0 -> excl[s] = true; printf("burial of engine %d: begins\n", s+1) };
#endif
	bury(s);
	d_step { gone = false; b = 0; a = 0 }
	od
}

#ifdef LEAVES
/* Leaving is burying oneself, when the stages are empty. */
#define idle(s) (st[s] == STOP && (ready[s]|running[s]|ended[s]) == 0 && flush[s] == 0 && hand[SLOT(s,asked[s])] != ASKED)

proctype Leaver(byte s) {
	byte b, a, x;
	bool gone;

end0:
#ifdef MUTANT_LEAVE_WITHOUT_BURYING
	d_step {
		idle(s) && row[s] ->
		printf("engine %d: leaves\n", s+1);
		row[s] = false; over(s); invariant()
	}
#else
	atomic {
		idle(s) && !excl[s] && shared[s] == 0 ->
		excl[s] = true; printf("engine %d: leaves\n", s+1)
	};
	bury(s);
	if
	:: !row[s] -> d_step { gone = false; if :: alive(s) -> over(s) :: else fi; skip }
	:: row[s] -> gone = false; goto end0 /* it was cut off */
	fi
#endif
}
#endif

/* ---- The process around a session ---- */

proctype Client(byte s) {
end0:	do
	/* Nobody can tell sessions apart before they join: they do so in order. */
#if defined(REJOINS)
	:: d_step { st[s] == OUT && (s == 0 || st[s-1] != OUT) && (s < SESSIONS-1 || st[0] == OVER) ->
#else
	:: d_step { st[s] == OUT && (s == 0 || st[s-1] != OUT) ->
#endif
		row[s] = true; low[s] = 1; st[s] = RUN; printf("engine %d: joins\n", s+1) }

#ifndef CLAIMS_ONLY
	/* One slot, in the order of positions. */
	:: d_step {
		st[s] == RUN && running[s] == 0 && ready[s] != 0 ->
		running[s] = ready[s] & ~(ready[s] - 1); ready[s] = ready[s] & ~running[s];
		/* Nobody whose row stands runs another entry of the same job. */
		overlap = false; i_ = 0;
		do
		:: i_ < ENTRIES ->
			j_ = 0;
			do
			:: j_ < SESSIONS ->
				x_ = 0;
				do
				:: x_ < ENTRIES ->
					if
					:: (running[s] & BIT(i_)) && row[s] && j_ != s && row[j_] && (running[j_] & BIT(x_)) && job[x_] == job[i_] -> overlap = true
					:: else
					fi;
					x_++
				:: else -> break
				od;
				j_++
			:: else -> break
			od;
			/* nor an entry that has an outcome already */
			if :: (running[s] & BIT(i_)) && row[s] && (done & BIT(i_)) -> overlap = true :: else fi;
			i_++
		:: else -> break
		od;
		printf("engine %d: begins the set %d\n", s+1, running[s]);
		assert(!overlap)
	   }
	:: d_step { alive(s) && running[s] != 0 -> ended[s] = ended[s] | running[s]; running[s] = 0 }
#ifdef RETRIES
	:: d_step { alive(s) && running[s] != 0 -> ended[s] = ended[s] | running[s]; again[s] = again[s] | running[s]; running[s] = 0 }
#endif
#endif
	/* Giving up waiting for an answer is as good as losing it. */
	:: d_step { alive(s) && losses > 0 && hand[SLOT(s,asked[s])] == ASKED -> losses--; hand[SLOT(s,asked[s])] = DOUBT; printf("engine %d: gives up waiting for claim %d\n", s+1, asked[s]) }
	:: d_step { alive(s) && losses > 0 && flush[s] != 0 -> losses--; flush[s] = 0; printf("engine %d: gives up waiting for a flush\n", s+1) }
	/* Long after the server has ended a transaction, doubts are forgotten. */
#ifdef MUTANT_FORGET
#define ended_(k) true
#else
#define ended_(k) (!live[SLOT(s,k)])
#endif
#define forgettable(k) (alive(s) && hand[SLOT(s,k)] == DOUBT && ended_(k) && !any2(TAKENBY,k))
#define TAKENBY(e,k) (OPEN(e) && owner[e] == s+1 && serial[e] == k)
	:: d_step { forgettable(1) -> hand[SLOT(s,1)] = NONE; printf("engine %d: forgets claim 1\n", s+1) }
#if REQUESTS > 1
	:: d_step { forgettable(2) -> hand[SLOT(s,2)] = NONE; printf("engine %d: forgets claim 2\n", s+1) }
#endif
#ifdef CRASHES
	:: d_step { alive(s) -> printf("engine %d: crashes, or fences itself\n", s+1); over(s) }
#endif
#ifdef LEAVES
	:: d_step { st[s] == RUN -> st[s] = STOP; ended[s] = ended[s] | ready[s]; again[s] = again[s] | ready[s]; ready[s] = 0; printf("engine %d: stops\n", s+1) }
#endif
	od
}

/* When nothing can happen any more: what is still open was left by engines
 * that nobody buried, or waits in the log for an engine that may claim. */
proctype Judge() {
	timeout -> d_step {
		stuck = false; i_ = 0;
		do
		:: i_ < ENTRIES ->
			if
#ifndef CLAIMS_ONLY
			:: OPEN(i_) && owner[i_] != 0 -> stuck = stuck || alive(owner[i_]-1)
#endif
			:: OPEN(i_) && owner[i_] == 0 ->
				j_ = 0;
				do
				:: j_ < SESSIONS -> stuck = stuck || (st[j_] == RUN && asked[j_] < REQUESTS); j_++
				:: else -> break
				od
			:: else
			fi;
			i_++
		:: else -> break
		od;
		assert(!stuck)
	}
}

init {
	byte i;
	d_step {
		do :: i < ENTRIES -> job[i] = i; i++ :: else -> break od;
		here = BIT(SEED) - 1
	};
	atomic {
		i = 0;
		do
		:: i < SESSIONS ->
			run Client(i); run Claimer(i);
#ifndef CLAIMS_ONLY
			run Flusher(i);
#endif
#if CLAIMERS > 1
			run Claimer(i);
#endif
#if FLUSHERS > 1
			run Flusher(i);
#endif
#ifdef BEATS
			run Beater(i);
#endif
#if BURIALS > 0
			run Burier(i);
#if BURIERS > 1
			run Burier(i);
#endif
#endif
#ifdef LEAVES
			run Leaver(i);
#endif
			i++
		:: else -> break
		od;
		i = 0;
		do :: i < PRODUCERS -> run Producer(i); i++ :: else -> break od;
#ifdef NOISE
		run Noise();
#endif
		run Judge(); i = 0
	}
}
