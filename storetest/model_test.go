package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// TestModel runs the suite against the simplest store there is: maps under one
// lock. It shows that the suite asks nothing impossible, and with a fault
// planted (see [TestSuiteCatchesMutants]) that it does ask.
func TestModel(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) storetest.Store {
			m := &model{database: &database{fault: os.Getenv(faultVariable)}}
			m.reset()
			return m
		},
		Again: func(_ testing.TB, of storetest.Store) (storetest.Store, error) {
			m := &model{database: of.(*model).database}
			_, err := m.Migrate(context.Background())
			return m, err
		},
		Begin: func(_ testing.TB, of storetest.Store) (storetest.Tx, error) {
			return &modelTx{db: of.(*model).database, begun: time.Now(), marks: map[string]int{}}, nil
		},
		SetSchema: func(_ testing.TB, of storetest.Store, installed, oldest int) error {
			d := of.(*model).database
			d.mu.Lock()
			defer d.mu.Unlock()
			d.installed, d.oldest = installed, oldest
			return nil
		},
	})
}

// database is what all handles and transactions share. Its lock guards
// everything.
type database struct {
	fault string // what is wrong with this store; empty for nothing

	mu        sync.Mutex
	installed int
	oldest    int
	seq       int64
	rows      []*row            // jobs, entries, waits and keys, in the order of their numbers
	jobs      map[stint.ID]*row // those of the rows that are jobs
	claims    []store.LedgerClaim
	done      map[store.Position]*record
	engines   []*store.EngineInfo
	history   map[store.EngineID]store.EngineInfo
	buried    map[store.EngineID]time.Time
	ends      map[store.EngineID]store.EngineEnd
	kinds     map[string]stint.KindInfo
	held      map[store.EngineID]bool
	deleted   map[store.Position]bool
	paused    map[string]store.QueueInfo
	errors    map[string]report.ErrorMark // by the keys of groups
	filters   map[string]store.SavedFilter
	schedules map[string]*store.ScheduleInfo
	leases    map[string]store.Lease
	limits    map[string]store.LimitInfo
	withheld  map[string]store.Paused // limits, and keys of them
	gates     map[string]store.GateState
	reruns    map[string]map[stint.ID]bool // jobs that come again, by gate, and whether they failed for good
	lows      map[store.EngineID]int64     // the bound of open claims, by the last beat
	numbers   map[store.LaneID]int64
	beats     map[store.EngineID]int64 // the number of the last
	slots     map[store.EngineID]int   // as they joined
	cancelled map[stint.ID]mark        // until the job is final
	bells     map[int]func(store.News)
	metrics   []report.Metrics // the newest last
	gone      []modelAttempt   // of jobs that were deleted
	summed    map[store.Position]bool
	changes   []store.Change // the newest last
	steps     map[stepOf]stint.RecordedStep
	said      map[store.Position]*said
}

// row is one of six things: a job, an entry, a wait, a key, a signal or an answer. It is invisible
// while its transaction is open.
type row struct {
	tx      *modelTx
	num     int64
	job     *stint.NewJob // of a job
	entry   *store.Entry  // of an entry
	wait    *store.LedgerWait
	next    store.Next // of a wait
	forJobs bool       // of a wait: it ends when other jobs have ended
	faulty  bool       // of an entry
	key     string     // of a key
	asked   [32]byte   // of a key: the fingerprint of its job
	holder  stint.ID   // of a key
	signal  *stint.SentSignal
	to      stint.ID // of a signal, and an answer
	answer  *stint.Answer
	answers string // the question's name, of an answer
	id      stint.ID
	from    stint.ID     // of a job: what it recovers
	place                // of a job: where it stands in a flow
	origin  stint.Origin // of a job: the schedule that made it
	made    time.Time
	due     time.Time
	lane    store.LaneID
	taken   bool
}

type record struct {
	store.Completion
	engine            store.EngineID
	started, finished time.Time
}

// model is one handle on a database.
type model struct {
	*database
	mine map[store.EngineID]bool // engines that joined by it
}

func (d *database) reset() {
	d.installed, d.oldest, d.seq = 1, 1, 0
	d.rows, d.claims, d.engines = nil, nil, nil
	d.jobs = map[stint.ID]*row{}
	d.done = map[store.Position]*record{}
	d.history = map[store.EngineID]store.EngineInfo{}
	d.buried = map[store.EngineID]time.Time{}
	d.ends = map[store.EngineID]store.EngineEnd{}
	d.kinds = map[string]stint.KindInfo{}
	d.held, d.beats, d.slots = map[store.EngineID]bool{}, map[store.EngineID]int64{}, map[store.EngineID]int{}
	d.cancelled = map[stint.ID]mark{}
	d.deleted = map[store.Position]bool{}
	d.paused = map[string]store.QueueInfo{}
	d.errors = map[string]report.ErrorMark{}
	d.filters = map[string]store.SavedFilter{}
	d.schedules = map[string]*store.ScheduleInfo{}
	d.leases = map[string]store.Lease{}
	d.limits, d.gates = map[string]store.LimitInfo{}, map[string]store.GateState{}
	d.reruns = map[string]map[stint.ID]bool{}
	d.lows = map[store.EngineID]int64{}
	d.numbers = map[store.LaneID]int64{}
	d.metrics, d.gone, d.changes = nil, nil, nil
	d.steps = map[stepOf]stint.RecordedStep{}
	d.said = map[store.Position]*said{}
	d.summed = map[store.Position]bool{}
	d.bells = map[int]func(store.News){}
}

// is tells whether a fault is planted.
func (d *database) is(fault string) bool { return d.fault == fault }

func (d *database) ring() {
	for _, bell := range d.bells {
		bell(store.News{})
	}
}

func (d *database) draw() int64 { d.seq++; return d.seq }

// visible lists rows that are committed.
func (d *database) visible(is func(*row) bool) []*row {
	var all []*row
	for _, r := range d.rows {
		if r.tx == nil && is(r) {
			all = append(all, r)
		}
	}
	return all
}

func (d *database) jobRow(id stint.ID) *row {
	r := d.jobs[id]
	if r == nil || r.tx != nil && !d.is("shows what is not committed") {
		return nil
	}
	return r
}

// addJob adds the row of a job.
func (d *database) addJob(r *row) {
	d.rows = append(d.rows, r)
	d.jobs[r.id] = r
}

func (m *model) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in, _ := tx.Handle.(*modelTx)
	if err := m.awaitKeys(ctx, in, jobs); err != nil {
		return nil, err
	}
	if tx.Handle != nil && in == nil && !m.is("takes any transaction") {
		return nil, errors.New("not a transaction of the model")
	}
	if m.installed == 0 {
		return nil, store.ErrSchema
	}
	conflict := m.keyConflict(jobs)
	if conflict != nil {
		if m.is("keeps the keys of what it refuses") {
			for _, j := range jobs {
				if m.keyRow(j.IdempotencyKey) == nil {
					m.takeKey(in, &j, 1)
				}
			}
		}
		if !m.is("stores what stands beside a conflict") {
			return nil, conflict
		}
	}
	if err := m.checkStarts(jobs); err != nil {
		return nil, err
	}
	if err := m.onceInBatch(jobs); err != nil {
		return nil, err
	}
	if err := m.checkFlow(in, jobs); err != nil {
		return nil, err
	}
	if len(jobs) > 0 && jobs[0].Member != nil && m.is("stores flows without their transaction") {
		in = nil
	}
	var receipts []stint.Receipt
	for _, j := range jobs {
		if all := m.ofHeld(jobs, receipts); all != nil {
			return all, nil
		}
		if id := m.there(in, &j, receipts); id != 0 {
			receipts = append(receipts, stint.Receipt{ID: id, Duplicate: true})
			continue
		}
		if k := m.keyRow(j.IdempotencyKey); k != nil && !m.is("forgets keys") {
			receipts = append(receipts, stint.Receipt{ID: k.holder, Duplicate: !m.is("calls duplicates new")})
			continue
		}
		var made stint.Receipt
		var kept, until time.Time
		if j.Unique != "" {
			if made, kept, until = m.takeUnique(in, j); made.Duplicate {
				m.takeKey(in, &j, made.ID)
				receipts = append(receipts, made)
				continue
			}
		}
		now := time.Now()
		if m.is("counts delays from the begin") && in != nil {
			now = in.begun
		}
		due := now
		if j.Delay > 0 {
			due = now.Add(j.Delay)
		} else if j.RunAt.After(now) {
			due = j.RunAt
		}
		if !kept.IsZero() {
			due = kept
		}
		if _, u, _ := j.UniqueKey(); u.OnConflict == stint.Debounce && due.After(until) {
			due = until
		}
		if !j.StartBy.IsZero() && kept.After(j.StartBy) {
			return nil, valid.Invalid("start by", "the job is due only after that")
		}
		j.StartBy, j.StartWithin = m.startBy(&j, now, due), 0
		if m.is("rounds numbers") {
			j.Args = rounded(j.Args)
		}
		num := m.draw()
		made.ID = stint.ID(num)
		receipts = append(receipts, made)
		m.takeKey(in, &j, stint.ID(num))
		if j.Unique != "" {
			m.keepUnique(in, j, stint.ID(num), until)
		}
		job := &row{tx: in, num: num, job: &j, id: stint.ID(num), made: now, due: due}
		m.addJob(job)
		m.join(job, receipts)
		next := store.Next{Kind: j.Kind, Queue: j.Queue, Priority: j.Priority, Attempt: 1, Part: store.PartNormal, Why: stint.Scheduled}
		if m.blocks(job) {
			m.block(in, job, next)
		} else if due.After(now) {
			m.wait(in, job, due, next)
		} else {
			m.append(in, job, num, now, next)
		}
		if m.is("stores half of a batch") && len(receipts) > 1 {
			break
		}
	}
	if m.is("answers ids in falling order") {
		slices.Reverse(receipts)
	}
	if in == nil || m.is("rings too early") {
		m.ring()
	}
	if conflict != nil {
		return nil, conflict
	}
	return receipts, nil
}

// append puts an entry into the log.
func (d *database) append(tx *modelTx, job *row, pos int64, now time.Time, s store.Next) {
	j := job.job
	e := &store.Entry{
		Job: stint.Job{
			ID: job.id, Kind: j.Kind, Args: j.Args, Queue: s.Queue, Priority: s.Priority, Attempt: s.Attempt, Losses: s.Losses,
			MaxLosses: d.maxLosses(j), Retry: j.Retry, Timeout: j.Timeout, StartBy: j.StartBy, Tags: j.Tags, URN: j.URN, Source: j.Source, Metadata: j.Metadata,
			Correlation: d.correlation(job), Origin: d.provenance(job),
			Created: job.made, Due: job.due, Flow: job.flow,
		},
		Pos: store.Position(pos), Ready: now, Suspect: s.Suspect,
	}
	if d.is("tells attempts nothing of their flow") || d.is("forgets the flow of later entries") && pos != int64(job.id) {
		e.Flow = 0
	}
	faulty := s.Faulty && !d.is("forgets what is faulty when it is ready")
	if d.is("forgets the suspicion") {
		e.Suspect = 0
	}
	if d.is("forgets arguments of later entries") && pos != int64(job.id) {
		e.Args = nil
	}
	if d.is("forgets correlation ids later") && pos != int64(job.id) {
		e.Correlation = job.id.String()
	}
	if d.is("forgets when to begin later") && pos != int64(job.id) {
		e.StartBy = time.Time{}
	}
	if d.is("forgets the bound of losses later") && pos != int64(job.id) {
		e.MaxLosses = stint.DefaultMaxLosses
	}
	part := cmp.Or(s.Part, store.PartNormal)
	if d.is("has no front lane") && part == store.PartFront {
		part = store.PartNormal
	}
	if e.Limits = d.limitKeys(j); d.is("forgets limits later") && pos != int64(job.id) {
		e.Limits = ""
	}
	r := &row{tx: tx, num: pos, entry: e, faulty: faulty, id: job.id, made: now, lane: d.lane(e, part)}
	d.rows = append(d.rows, r)
}

// provenance is what made a job.
func (d *database) provenance(job *row) stint.Origin {
	p := job.origin
	p.Recovered = job.from
	return p
}

// maxLosses is how often a job may be lost.
func (d *database) maxLosses(j *stint.NewJob) int {
	if j.MaxLosses == nil || d.is("takes no losses for the default") && *j.MaxLosses == 0 {
		return stint.DefaultMaxLosses
	}
	return *j.MaxLosses
}

// checkStarts refuses jobs that are due only after they are to begin.
func (d *database) checkStarts(jobs []stint.NewJob) error {
	for _, j := range jobs {
		if !j.StartBy.IsZero() && time.Now().Add(j.Delay).After(j.StartBy) && j.Delay > 0 && !d.is("takes what is due too late") {
			return valid.Invalid("start by", "the job is due only after that")
		}
	}
	return nil
}

// startBy is when a job is to begin at the latest.
func (d *database) startBy(j *stint.NewJob, now, due time.Time) time.Time {
	switch {
	case d.is("forgets when to begin"):
		return time.Time{}
	case j.StartWithin == 0:
		return j.StartBy
	case d.is("counts from the enqueue when to begin"):
		return now.Add(j.StartWithin)
	default:
		return due.Add(j.StartWithin)
	}
}

func (d *database) wait(tx *modelTx, job *row, due time.Time, s store.Next) {
	if s.Func != "" {
		due = time.Time{}
	}
	w := &store.LedgerWait{Job: job.id, Attempt: s.Attempt, Due: due, Why: s.Why}
	d.rows = append(d.rows, &row{tx: tx, num: d.seq, wait: w, next: s, id: job.id, due: due})
}

// modelTx is a caller's transaction: rows that nobody else sees yet.
type modelTx struct {
	db    *database
	begun time.Time
	marks map[string]int
	ended bool
}

func (x *modelTx) Tx() stint.Tx { return stint.Tx{Handle: x} }

func (x *modelTx) Commit() error {
	x.db.mu.Lock()
	defer x.db.mu.Unlock()
	if x.ended {
		return errEnded
	}
	x.commit()
	return nil
}

var errEnded = errors.New("the transaction has ended")

func (x *modelTx) commit() {
	x.ended = true
	for _, r := range x.db.rows {
		if r.tx == x {
			r.tx = nil
		}
	}
	x.db.settle()
	if !x.db.is("does not ring at a commit") {
		x.db.ring()
	}
}

func (x *modelTx) Rollback() error {
	x.db.mu.Lock()
	defer x.db.mu.Unlock()
	if !x.ended {
		x.back(0)
	}
	x.ended = true
	return nil
}

// back takes back what the transaction wrote, but for the first n rows.
func (x *modelTx) back(n int) {
	x.db.rows = slices.DeleteFunc(x.db.rows, func(r *row) bool {
		if r.tx != x || r.wait != nil && x.db.is("keeps waits that were rolled back") || r.key != "" && x.db.is("keeps keys that were rolled back") {
			return false
		}
		if r.answer != nil && x.db.is("keeps answers that were rolled back") || r.signal != nil && x.db.is("sends what was rolled back") {
			r.tx = nil
			return false
		}
		n--
		if n < 0 && r.job != nil {
			delete(x.db.jobs, r.id)
		}
		return n < 0
	})
}

func (x *modelTx) Prepare() error { return nil }

func (x *modelTx) Savepoint(name string) error {
	x.db.mu.Lock()
	defer x.db.mu.Unlock()
	n := 0
	for _, r := range x.db.rows {
		if r.tx == x {
			n++
		}
	}
	x.marks[name] = n
	return nil
}

func (x *modelTx) RollbackTo(name string) error {
	x.db.mu.Lock()
	defer x.db.mu.Unlock()
	if !x.db.is("ignores savepoints") {
		x.back(x.marks[name])
	}
	return nil
}
