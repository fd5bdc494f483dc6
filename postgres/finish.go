package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const finishSQL = `select stint.finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
  $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, x_limits => $29, s_awaits => $30, x_flow => $31, p_again => $32)`

// finishLogsSQL keeps before that what the attempts said: they have no outcome yet.
const finishLogsSQL = finishSQL + ` from stint.keep_logs($1, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48)`

// Finish implements [store.Finisher]: one message to its commit.
func (s *Store) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	if len(done) == 0 {
		return 0, nil
	}
	// By position, as every writer of executions does: a repetition beside a
	// flush that is still under way must not wait for it crosswise.
	done = sorted(done)
	if err := checkClaims(claims, done); err != nil {
		return 0, err
	}
	rows, err := executionParams(done)
	if err != nil {
		return 0, err
	}
	params := append([]param{int8s(engine)}, claimParams(claims)...)
	params = append(params, rows...)
	n, err := s.finishNew(ctx, params, logsOf(done).params())
	if err != nil {
		return 0, fmt.Errorf("record %d outcomes: %w", len(done), err)
	}
	s.waits.Finished(done)
	return n, nil
}

// finishNew records outcomes as if none of them were recorded already, which
// saves the server half of its work, and then as they are.
func (s *Store) finishNew(ctx context.Context, params, logs []param) (int, error) {
	again := false
	finish := func() (int, error) { return s.finish(ctx, append(params, bools(again)), logs) }
	n, err := retryExplicit(s, finish)
	if isDuplicate(err) {
		again = true
		n, err = retryExplicit(s, finish)
	}
	return n, err
}

// isDuplicate reports whether an execution was refused because its entry has one.
func isDuplicate(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == "executions_pkey"
}

// checkClaims makes sure that the claim of each outcome is among those that the
// database is asked for. After a failover an unasked one would be believed.
func checkClaims(claims []store.ClaimRef, done []store.Completion) error {
	known := make(map[store.Nonce]bool, len(claims))
	for _, c := range claims {
		known[c.Nonce] = true
	}
	for i := range done {
		x := &done[i]
		if !known[x.Nonce] {
			return fmt.Errorf("record %d outcomes: %w: that of position %d was not named", len(done), store.ErrClaimGone, x.Pos)
		}
	}
	return nil
}

// sorted are executions by position; those that are sorted already as they are.
func sorted(done []store.Completion) []store.Completion {
	order := make([]int32, len(done))
	for i := range order {
		order[i] = int32(i)
	}
	byPosition := func(a, b int32) int {
		return cmp.Compare(done[a].Pos, done[b].Pos)
	}
	if slices.IsSortedFunc(order, byPosition) {
		return done
	}
	slices.SortStableFunc(order, byPosition)
	all := make([]store.Completion, len(done))
	for i, from := range order {
		all[i] = done[from]
	}
	return all
}

func (s *Store) finish(ctx context.Context, params, logs []param) (int, error) {
	text := s.sql.finish
	if logs != nil {
		text, params = s.sql.finishLogs, append(params, logs...)
	}
	conn, err := s.work().Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	p, err := s.pipeline(ctx, conn.Conn(), text)
	if err != nil {
		return 0, err
	}
	written := 0
	err = p.call(s.explicit.Load(), text, func(v [][]byte) { written = int(int32of(v[0])) }, params...)
	return written, translate(err)
}

func claimParams(claims []store.ClaimRef) []param {
	lane, n, nonce := claimKeys(claims)
	return []param{int8array(lane), int8array(n), int8array(nonce)}
}

func claimKeys(claims []store.ClaimRef) ([]store.LaneID, []int64, []store.Nonce) {
	lane, n, nonce := make([]store.LaneID, len(claims)), make([]int64, len(claims)), make([]store.Nonce, len(claims))
	for i, c := range claims {
		lane[i], n[i], nonce[i] = c.Lane, c.N, c.Nonce
	}
	return lane, n, nonce
}

// executionParams are the columns that stint.record takes: executions, then
// the successors of those that have one, the limits, what successors await, and which are of flows.
func executionParams(done []store.Completion) ([]param, error) {
	n := len(done)
	pos, nonce := make([]store.Position, n), make([]store.Nonce, n)
	attempt, slot := make([]int32, n), make([]int16, n)
	started, ended := make([]int64, n), make([]int64, n)
	outcome, final := make([]int16, n), make([]bool, n)
	var reason, result, failure, limits sparse[string]
	var job []*int64
	flow := param{oid: pgtype.BoolArrayOID} // null unless a job is one of a flow
	var next []*store.Completion
	usual := true // first attempts that completed their jobs
	now := time.Now()
	for i := range done {
		x := &done[i]
		usual = usual && x.Attempt == 1 && x.Outcome == stint.OutcomeCompleted && x.Final
		pos[i], nonce[i], attempt[i], slot[i] = x.Pos, x.Nonce, int32(x.Attempt), int16(min(x.Slot, math.MaxInt16))
		outcome[i], final[i] = int16(x.Outcome), x.Final
		ended[i] = age(now, x.Ended)
		started[i] = max(age(now, x.Started), ended[i])
		if x.Started.IsZero() {
			started[i] = ended[i]
		}
		if int64(x.Job) != int64(x.Pos) {
			if job == nil {
				job = make([]*int64, n)
			}
			job[i] = new(int64(x.Job))
		}
		reason.setText(n, i, x.Reason)
		result.setText(n, i, string(x.Result))
		if x.Error != nil {
			text, err := json.Marshal(x.Error)
			if err != nil {
				return nil, err
			}
			failure.set(n, i, string(text))
		}
		limits.setText(n, i, x.Limits)
		if x.Flow && flow.value == nil {
			flow = boolarray(eachOf(done, func(x *store.Completion) bool { return x.Flow }))
		}
		if x.Next != nil {
			next = append(next, x)
		}
	}
	attempts, outcomes, finals := int4array(attempt), int2array(outcome), boolarray(final)
	if usual {
		attempts.value, outcomes.value, finals.value = nil, nil, nil
	}
	params := append([]param{
		int8array(pos), int8nulls(job), int8array(nonce), attempts, int2array(slot),
		int8array(started), int8array(ended), outcomes, finals,
		textarray(reason.column), textarray(result.column), textarray(failure.column),
	}, successors(next, now)...)
	var awaits sparse[string]
	for i, x := range next {
		awaits.setText(len(next), i, x.Next.Awaits)
	}
	return append(params, textarray(limits.column), textarray(awaits.column), flow), nil
}

// age is how long ago an instant of this process was, in microseconds on its
// monotonic clock. An instant that was not set is now.
func age(now, then time.Time) int64 {
	if then.IsZero() {
		return 0
	}
	return max(0, now.Sub(then).Microseconds())
}

// successors are the columns of what follows executions, as seen at the instant of these: all null when nothing does.
func successors(of []*store.Completion, now time.Time) []param {
	if len(of) == 0 {
		var none []param
		for _, oid := range []uint32{pgtype.Int8ArrayOID, pgtype.Int8ArrayOID, pgtype.Int8ArrayOID, pgtype.TextArrayOID, pgtype.TextArrayOID, pgtype.Int2ArrayOID,
			pgtype.TextArrayOID, pgtype.Int4ArrayOID, pgtype.Int2ArrayOID, pgtype.Int2ArrayOID, pgtype.TextArrayOID, pgtype.BoolArrayOID} {
			none = append(none, param{oid: oid})
		}
		return none
	}
	undecided, faulty := textarray(nil), param{oid: pgtype.BoolArrayOID}
	if slices.ContainsFunc(of, func(x *store.Completion) bool { return x.Next.Faulty || x.Next.Func != "" }) {
		undecided = textarray(each(of, func(x *store.Completion) *string { return nilText(x.Next.Func) }))
		faulty = boolarray(each(of, func(x *store.Completion) bool { return x.Next.Faulty }))
	}
	return []param{
		int8array(each(of, func(x *store.Completion) store.Position { return x.Pos })),
		int8array(each(of, func(x *store.Completion) store.LaneID {
			return store.LimitedLane(x.Next.Queue, x.Next.Priority, x.Next.Part, x.Next.Kind, x.Next.Limits).ID
		})),
		int8array(each(of, func(x *store.Completion) int64 { return x.Next.Delay.Microseconds() - age(now, x.Ended) })),
		textarray(each(of, func(x *store.Completion) *string {
			if !x.Next.Wait {
				return nil
			}
			return new(string(x.Next.Why))
		})),
		textarray(each(of, func(x *store.Completion) *string { return &x.Next.Queue })),
		int2array(each(of, func(x *store.Completion) int16 { return int16(x.Next.Priority) })),
		textarray(each(of, func(x *store.Completion) *string { return &x.Next.Kind })),
		int4array(each(of, func(x *store.Completion) int32 { return int32(x.Next.Attempt) })),
		int2array(each(of, func(x *store.Completion) int16 { return int16(x.Next.Losses) })),
		int2array(each(of, func(x *store.Completion) int16 { return int16(x.Next.Suspect) })),
		undecided, faulty,
	}
}

// eachOf is a column of what is said of each of them.
func eachOf[V, T any](all []V, say func(x *V) T) []T {
	column := make([]T, len(all))
	for i := range all {
		column[i] = say(&all[i])
	}
	return column
}

// each is the same of those that are pointed at.
func each[T any](all []*store.Completion, say func(x *store.Completion) T) []T {
	column := make([]T, len(all))
	for i, x := range all {
		column[i] = say(x)
	}
	return column
}
