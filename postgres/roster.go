package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Join implements [store.Roster]. The engine's row and its beat appear
// together, so that an engine without a beat never exists.
func (s *Store) Join(ctx context.Context, e store.EngineInfo, kinds []stint.KindInfo) (err error) {
	defer wrap(&err, "join the roster")
	if err := s.startWork(ctx, e.TimeToLive); err != nil {
		return err
	}
	if s.pooled || e.ByBeats() {
		e.MaxOutage = 0
	}
	if e.MaxOutage > 0 && s.appear(ctx, e) {
		defer func() {
			if err != nil {
				s.Release(e.Token)
			}
		}()
	}
	info := store.SchemaInfo{Known: len(s.steps)}
	return s.transactWork(ctx, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(s.sql.in(`select version, oldest from stint.meta`)).QueryRow(func(row pgx.Row) error {
			return row.Scan(&info.Installed, &info.Oldest)
		})
		batch.Queue(s.sql.in(`
			insert into stint.engines (token, instance, host, boot_id, pid, pid_started, version, queues, kinds, slots, ttl, max_outage)
			values ($1, $2, $3, $4, $5, $6, $7, coalesce($8::text[], '{}'), coalesce($9::text[], '{}'), $10, $11, $12)`),
			e.Token, e.Instance, e.Host, e.BootID, e.PID, e.PIDStarted, e.Version, e.Queues, e.Kinds, e.Slots, e.TimeToLive.Milliseconds(), e.MaxOutage.Milliseconds())
		batch.Queue(s.sql.in(`
			insert into stint.engine_history (token, instance, host, pid, version, queues, kinds, slots, ttl, joined, drain)
			select token, instance, host, pid, version, queues, kinds, slots, ttl, joined, exists (select from stint.engine_history h where h.token = $2 and h.drain)
			from stint.engines where token = $1`), e.Token, e.Former)
		batch.Queue(s.sql.in(`insert into stint.beats (token, drain) select token, drain from stint.engine_history where token = $1`), e.Token)
		// By name, as every engine does: two that join at once never wait for
		// each other crosswise.
		kinds = slices.SortedFunc(slices.Values(kinds), func(a, b stint.KindInfo) int { return strings.Compare(a.Name, b.Name) })
		for _, k := range kinds {
			policy, err := inlinePolicy(k.Retry)
			if err != nil {
				return err
			}
			// Written only when it changed: engines of many machines join at once.
			batch.Queue(s.sql.in(`
				insert into stint.kinds as k (kind, queue, priority, timeout, tags, retry, max_losses, start_within, uniqueness, limits, sealed, redacted)
				values ($1, $2, $3, $4, coalesce($5::text[], '{}'), $6, $7, $8, $9, $10, $11, $12)
				on conflict (kind) do update
				set queue = excluded.queue, priority = excluded.priority, timeout = excluded.timeout,
				    tags = excluded.tags, retry = excluded.retry, max_losses = excluded.max_losses,
				    start_within = excluded.start_within, uniqueness = excluded.uniqueness, limits = excluded.limits, sealed = excluded.sealed, redacted = excluded.redacted, declared = excluded.declared
				where (k.queue, k.priority, k.timeout, k.tags, k.retry, k.max_losses, k.start_within, k.uniqueness, k.limits, k.sealed, k.redacted)
				   is distinct from (excluded.queue, excluded.priority, excluded.timeout, excluded.tags, excluded.retry, excluded.max_losses, excluded.start_within, excluded.uniqueness, excluded.limits, excluded.sealed, excluded.redacted)`),
				k.Name, cmp.Or(k.Queue, stint.DefaultQueue), k.Priority, millis(k.Timeout), k.Tags, policy, k.MaxLosses, millis(k.StartWithin), orNull(k.Unique), noneNull(k.Limits), noneNull(k.Sealed), noneNull(k.Redacted))
		}
		return cmp.Or(tx.SendBatch(ctx, batch).Close(), s.tooNew(info))
	})
}

// noneNull keeps a list that has nothing from being stored as an empty one.
func noneNull[V any](list []V) []V {
	if len(list) == 0 {
		return nil
	}
	return list
}

// millis is a duration as the schema keeps it: null for none.
func millis(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return new(d.Milliseconds())
}

// inlinePolicy is a policy's JSON: null for the default.
func inlinePolicy(p retry.Policy) (*string, error) {
	if p == retry.Default() {
		return nil, nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return new(string(text)), nil
}

// beatSQL passes over the note of a deletion that is under way: that may take long,
// and a beat that waits is no sign of life. A later beat takes it away.
const beatSQL = `
with settled as (
  delete from stint.deletions d where d.engine in (
    select o.engine from stint.deletions o
    where o.engine = $1 and o.serial < $2 and o.at < clock_timestamp() - interval '1 minute' for update skip locked)
)
update stint.beats b
set beat = clock_timestamp(), low = greatest(b.low, $2), up_since = pg_postmaster_start_time(), slots = $7,
    number = case when b.timeline = fence.timeline then greatest(b.number, $4) else b.number end,
    running = case when $4 >= b.number then $3 else b.running end,
    started = case when $4 >= b.number then array(
      select coalesce(clock_timestamp() - r.ago * interval '1 microsecond', b.started[array_position(b.running, r.pos)])
      from unnest($3::bigint[], $6::bigint[]) with ordinality as r(pos, ago, i) order by r.i) else b.started end
from stint.engines e, (select pg_advisory_xact_lock_shared($1::bigint), stint.durable(), substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline) fence
where b.token = $1 and e.token = b.token
returning true, clock_timestamp(), b.drain or (select m.oldest > $5 from stint.meta m), b.timeline = fence.timeline`

// Heartbeat implements [store.Roster]. It updates and never inserts: an upsert
// would bring back the buried. It takes the engine's lock as every write of an
// engine does, so that a burial which it keeps waiting knows, and can end it.
// An engine of a program that the schema has left behind is asked to leave.
func (s *Store) Heartbeat(ctx context.Context, engine store.EngineID, b store.Heartbeat) (orders store.HeartbeatReply, err error) {
	defer wrap(&err, "beat")
	found, same := false, false
	scan := func(row pgx.Row) error {
		err := row.Scan(&found, &orders.Now, &orders.Drain, &same)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	}
	now, ago := time.Now(), make([]*int64, len(b.Running))
	for i, pos := range b.Running {
		if began, ok := b.Started[pos]; ok {
			ago[i] = new(age(now, began))
		}
	}
	if p, ok := s.presences.Load(engine); ok {
		p.(*presence).beaten(len(b.Running) > 0)
	}
	beat := statement{s.sql.beat, []any{engine, b.Low, notNil(b.Running), b.Number, len(s.steps), ago, b.Slots}}
	if len(b.Logs) == 0 {
		err = s.once(ctx, scan, beat.text, beat.args...)
	} else {
		err = s.beatWith(ctx, b.Logs, engine, beat, scan)
	}
	switch {
	case err == nil && !found:
		err = store.ErrBuried
	case err == nil && !same:
		return orders, store.ErrMoved
	}
	if errors.Is(err, store.ErrBuried) {
		s.Release(engine)
	}
	return orders, err
}

// moveSQL makes another timeline the engine's if nothing is missing there. What was
// written in one transaction is there or not as a whole, and so is everything before it.
const moveSQL = `
update stint.beats b set timeline = substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
where b.token = $1 and b.number >= $2
  and cardinality($3::bigint[]) = (select count(*) from stint.executions x where x.pos = any ($3) and x.engine = $1)
  and not exists (
    select from unnest($7::text[], $8::bigint[]) as put(gate, n)
    where not exists (select from stint.permits p where p.gate = put.gate and p.n = put.n and p.engine = $1))
  and not exists (
    select from unnest($4::bigint[], $5::bigint[], $6::bigint[]) as made(lane, n, nonce)
    where not exists (select from stint.claims c where c.lane = made.lane and c.n = made.n and c.nonce = made.nonce))
returning true`

var _ store.ServerMover = (*Store)(nil)

// Move implements [store.ServerMover].
func (s *Store) Move(ctx context.Context, engine store.EngineID, proof store.Proof) (err error) {
	defer wrap(&err, "go on at another server")
	lane, n, nonce := claimKeys(proof.Claims)
	gates, states := make([]string, len(proof.Permits)), make([]int64, len(proof.Permits))
	for i, p := range proof.Permits {
		gates[i], states[i] = p.Gate, p.N
	}
	err = s.mark(ctx, moveSQL, engine, proof.Beat, notNil(proof.Recorded), lane, n, nonce, gates, states)
	if errors.Is(err, store.ErrBuried) {
		s.Release(engine)
	}
	return err
}

// Drain implements [store.Roster].
func (s *Store) Drain(ctx context.Context, engine store.EngineID) (err error) {
	defer wrap(&err, "drain engine %d", engine)
	// The history keeps it for when the engine is buried before it learns of it.
	return s.mark(ctx, `
		with asked as (update stint.beats set drain = true where token = $1 returning token)
		update stint.engine_history h set drain = true from asked a where h.token = a.token returning true`, engine)
}

// mark changes what is noted beside an engine's beat. Read committed, as every
// write of that row: under a stricter isolation it would fail beside a beat.
func (s *Store) mark(ctx context.Context, text string, args ...any) error {
	found := false
	err := s.once(ctx, func(row pgx.Row) error {
		if err := row.Scan(&found); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	}, s.sql.in(text), args...)
	if err == nil && !found {
		err = store.ErrBuried
	}
	return err
}

// heldSQL finds an engine's claims with entries that have no outcome. The
// index on (engine, serial) bounds it to what may still be open.
const heldSQL = `
select c.lane, c.n, c.nonce, c.serial, p.pos
from stint.claims c cross join lateral stint.unfinished(c.positions) p
where c.engine = $1 and c.serial >= $2 and c.serial < $3 and c.serial <> all ($4)
  and (select true from stint.entries e where e.pos = p.pos) -- of a deleted job nothing is there; not exists, which may be planned the wrong way round
order by c.serial, p.i`

// Held implements [store.Roster].
func (s *Store) Held(ctx context.Context, engine store.EngineID, serial int64, known ...int64) (_ []store.Claim, err error) {
	defer wrap(&err, "read what engine %d holds", engine)
	return s.held(ctx, s.work(), engine, serial, math.MaxInt64, known...)
}

func (s *Store) held(ctx context.Context, q queryer, engine store.EngineID, from, to int64, known ...int64) ([]store.Claim, error) {
	rows, err := q.Query(ctx, s.sql.in(heldSQL), engine, from, to, append([]int64{}, known...)) // null would leave out all
	if err != nil {
		return nil, translate(err)
	}
	var (
		claims []store.Claim
		ref    store.ClaimRef
		number int64
		pos    store.Position
	)
	_, err = pgx.ForEachRow(rows, []any{&ref.Lane, &ref.N, &ref.Nonce, &number, &pos}, func() error {
		if last := len(claims) - 1; last < 0 || claims[last].ClaimRef != ref {
			claims = append(claims, store.Claim{ClaimRef: ref, Serial: number})
		}
		last := &claims[len(claims)-1]
		last.Positions = append(last.Positions, pos)
		return nil
	})
	return claims, translate(err)
}

// Announced implements [store.Roster].
func (s *Store) Announced(ctx context.Context, engine store.EngineID) ([]store.Entry, error) {
	at, err := collect(ctx, s.work(), fmt.Sprintf("read what engine %d announced", engine), s.sql.in(`
		select p.pos from stint.beats b cross join lateral stint.unfinished(b.running) p where b.token = $1 order by p.pos`), []any{engine}, pgx.RowTo[store.Position])
	if err != nil {
		return nil, err
	}
	return s.Fetch(ctx, at)
}

// Engines implements [store.Roster]. What an engine said when it joined is read again only when its row has
// changed: the engines of an idle fleet look at each other more often than they do anything else.
func (s *Store) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	roster, err := collect(ctx, s.work(), "list engines", s.sql.in(`
		select e.xmin, b.token, b.slots, b.beat, b.running, b.started, b.low, b.drain from stint.engines e join stint.beats b using (token)`), nil, scanBeat)
	if err != nil {
		return nil, err
	}
	joined := deref(s.joined.Load())
	if slices.ContainsFunc(roster, func(b joinedEngine) bool { return joined[b.Token].version != b.version }) {
		if joined, err = s.readJoined(ctx); err != nil {
			return nil, err
		}
		s.joined.Store(&joined)
	}
	engines := make([]store.EngineInfo, 0, len(roster))
	for _, b := range roster {
		if e, ok := joined[b.Token]; ok { // it was not buried in between
			e.Slots = cmp.Or(b.Slots, e.Slots)
			e.Beat, e.Running, e.Started, e.Low, e.Draining = b.Beat, b.Running, b.Started, b.Low, b.Draining
			engines = append(engines, e.EngineInfo)
		}
	}
	slices.SortFunc(engines, func(a, b store.EngineInfo) int {
		return cmp.Or(a.Joined.Compare(b.Joined), cmp.Compare(a.Token, b.Token))
	})
	return engines, nil
}

// joinedEngine is an engine, and which version of its row said so.
type joinedEngine struct {
	store.EngineInfo
	version uint32
}

// readJoined reads what engines said when they joined.
func (s *Store) readJoined(ctx context.Context) (map[store.EngineID]joinedEngine, error) {
	all, err := collect(ctx, s.work(), "read what engines are", s.sql.in(`
		select xmin, token, instance, host, boot_id, pid, pid_started, version, queues, kinds, slots, ttl, max_outage, joined from stint.engines`), nil,
		func(row pgx.CollectableRow) (e joinedEngine, err error) {
			var ttl, outage int64
			err = row.Scan(&e.version, &e.Token, &e.Instance, &e.Host, &e.BootID, &e.PID, &e.PIDStarted, &e.Version, &e.Queues, &e.Kinds, &e.Slots, &ttl, &outage, &e.Joined)
			e.TimeToLive, e.MaxOutage = time.Duration(ttl)*time.Millisecond, time.Duration(outage)*time.Millisecond
			return e, err
		})
	joined := make(map[store.EngineID]joinedEngine, len(all))
	for _, e := range all {
		joined[e.Token] = e
	}
	return joined, err
}

// scanBeat reads what an engine's last beat said.
func scanBeat(row pgx.CollectableRow) (e joinedEngine, err error) {
	var started []*time.Time
	err = row.Scan(&e.version, &e.Token, &e.Slots, &e.Beat, &e.Running, &started, &e.Low, &e.Draining)
	e.Started = map[store.Position]time.Time{}
	for i, t := range started {
		if t != nil && i < len(e.Running) {
			e.Started[e.Running[i]] = *t
		}
	}
	return e, err
}
