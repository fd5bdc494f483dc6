package storetest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// rounded is JSON whose numbers went through floats.
func rounded(raw json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// open lists the entries of a lane that can be claimed, in their order.
func (d *database) open(lane store.LaneID) []*row {
	open := d.visible(func(r *row) bool { return r.entry != nil && r.lane == lane && !r.taken })
	slices.SortFunc(open, func(a, b *row) int { return cmp.Compare(a.num, b.num) })
	if d.is("loses late rows") {
		last := d.frontier(lane)
		open = slices.DeleteFunc(open, func(r *row) bool { return r.num <= last })
	}
	if d.is("claims in the wrong order") {
		slices.Reverse(open)
	}
	return open
}

// frontier is the last position that was taken of a lane.
func (d *database) frontier(lane store.LaneID) int64 {
	var last store.Position
	for _, c := range d.claims {
		if c.Lane == lane && len(c.Positions) > 0 {
			last = max(last, slices.Max(c.Positions))
		}
	}
	return int64(last)
}

func (m *model) Look(_ context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heads(known, func(*row) bool { return true }), nil
}

// LookSince has a mark for each row that it saw: a string that says so.
func (m *model) LookSince(_ context.Context, since store.Mark) (store.Appended, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, fresh := []byte(since.Seen), map[store.LaneID]bool{}
	n := 0
	for _, r := range m.visible(func(r *row) bool { return r.entry != nil }) {
		for int(r.num) >= len(seen) {
			seen = append(seen, 0)
		}
		if seen[r.num] == 0 {
			seen[r.num], fresh[r.lane] = 1, true
			n++
		}
	}
	a := store.Appended{Until: store.Mark{Set: true, Seen: string(seen)}, All: !since.Set || n > 1000}
	if m.is("says of no look that it did not see all") {
		a.All = false
	}
	if m.is("does not remember what it saw") {
		a.Until = since
		a.Until.Set = true
	}
	if !a.All {
		a.Heads = m.heads(store.LaneHints{}, func(r *row) bool { return fresh[r.lane] || m.is("shows all lanes as new") })
	}
	return a, nil
}

// heads are lanes with something to claim.
func (m *model) heads(known store.LaneHints, of func(*row) bool) []store.LaneHead {
	var sights []store.LaneHead
	seen := map[store.LaneID]bool{}
	for _, r := range m.rows {
		if r.entry == nil || r.lane == store.NoLane || seen[r.lane] || !of(r) || slices.Contains(known.Foreign, r.lane) && !m.is("looks into foreign lanes") {
			continue
		}
		seen[r.lane] = true
		if open := m.open(r.lane); len(open) > 0 {
			e := open[0].entry
			_, paused := m.paused[m.exactly(e.Queue)]
			paused = paused && (r.lane == store.LaneOf(e.Queue, 0, store.PartNormal, "").ID || !m.is("pauses the usual lane only"))
			sight := store.LaneHead{Lane: r.lane, Queue: e.Queue, Priority: e.Priority, Kind: e.Kind, Limits: e.Limits, First: e.Pos, Paused: paused}
			for _, gate := range []string{stint.QueueLimit, store.QueueGate(e.Queue)} {
				_, withheld := m.withheld[gate]
				sight.Limited = sight.Limited || (m.limits[gate].Set+m.limits[gate].Declared != "" || withheld) && !m.is("does not see the limits of queues")
			}
			if m.is("looks without limits") {
				sight.Limits = ""
			}
			sights = append(sights, sight)
		}
		if m.is("looks at one lane only") && len(sights) == 1 {
			break
		}
	}
	return sights
}

func (m *model) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
		return store.Claim{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.engine(req.Engine) == nil && !m.is("claims for the buried") {
		return store.Claim{}, store.ErrBuried
	}
	if m.is("says busy without cause") && !req.Wait {
		return store.Claim{}, store.ErrLaneBusy
	}
	open := m.open(req.Lane)
	limit := req.Max
	if m.is("takes more than Max") {
		limit++
	}
	open = open[:min(limit, len(open))]
	c := store.Claim{ClaimRef: store.ClaimRef{Lane: req.Lane, N: m.numbers[req.Lane] + 1, Nonce: req.Nonce}, Serial: req.Serial}
	for i, r := range open {
		r.taken = i != 2 || !m.is("hands an entry out twice")
		c.Positions = append(c.Positions, r.entry.Pos)
		c.Entries = append(c.Entries, m.read(r))
	}
	if len(open) > 0 || m.is("records empty claims") {
		m.numbers[req.Lane] = c.N
		m.claims = append(m.claims, store.LedgerClaim{ClaimRef: c.ClaimRef, Engine: req.Engine, Serial: req.Serial, Positions: c.Positions})
	}
	return c, nil
}

func (m *model) ClaimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) (all []store.Claim, err error) {
	for ; len(all) < len(lanes) && req.Max > 0; req.Serial++ {
		req.Lane = lanes[len(all)].Lane
		c, err := m.Claim(ctx, req)
		if err != nil {
			return nil, err
		}
		if all = append(all, c); !m.is("fills each lane of a call") {
			req.Max -= len(c.Positions)
		}
	}
	return all, nil
}

// read is an entry as an engine sees it.
func (d *database) read(r *row) store.Entry {
	e := *r.entry
	_, e.Cancelled = d.markOf(r.id)
	e.Cancelled = e.Cancelled && !d.is("hands out the cancelled like others")
	return e
}

func (m *model) Fetch(_ context.Context, at []store.Position) ([]store.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var entries []store.Entry
	for _, r := range m.rows {
		if r.entry != nil && slices.Contains(at, r.entry.Pos) {
			entries = append(entries, m.read(r))
		}
	}
	if !m.is("fetches in its own order") {
		slices.SortFunc(entries, func(a, b store.Entry) int {
			return cmp.Compare(slices.Index(at, a.Pos), slices.Index(at, b.Pos))
		})
	}
	return entries, nil
}

func (m *model) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.mayRecord(engine, claims); err != nil {
		return 0, err
	}
	for _, x := range done {
		if !m.is("stores poison") && (bytes.Contains(x.Result, []byte(`\u0000`)) || len(x.Result) > 0 && !json.Valid(x.Result)) {
			return 0, stint.ErrUnstorable
		}
		if m.is("stores poison") && bytes.Contains(x.Result, []byte(`\u0000`)) {
			return 0, context.DeadlineExceeded
		}
	}
	n := 0
	for _, x := range done {
		if x.Log != nil && !m.is("hears nothing with outcomes") {
			m.keepLog(engine, x.Log)
		}
		if m.record(engine, x) {
			n++
		}
	}
	m.ring()
	if m.is("counts repetitions") {
		return len(done), nil
	}
	return n, nil
}

// mayRecord is the fence.
func (d *database) mayRecord(engine store.EngineID, claims []store.ClaimRef) error {
	if d.engine(engine) == nil && !d.is("records for the buried") {
		return store.ErrBuried
	}
	for _, ref := range claims {
		if !slices.ContainsFunc(d.claims, func(c store.LedgerClaim) bool {
			return (c.ClaimRef == ref || d.is("accepts a wrong nonce") && c.Lane == ref.Lane && c.N == ref.N) &&
				(c.Engine == engine || d.is("records under the claims of others"))
		}) {
			return store.ErrClaimGone
		}
	}
	return nil
}

// record writes one execution and what follows it, unless it is there.
func (d *database) record(engine store.EngineID, x store.Completion) bool {
	if d.deleted[x.Pos] && !d.is("brings back the deleted") {
		return false
	}
	if d.done[x.Pos] != nil {
		if d.is("repeats successors") && x.Next != nil {
			d.follow(x, time.Now())
		}
		if !d.is("overwrites outcomes") {
			return false
		}
	}
	now := time.Now()
	ended := now
	if !x.Ended.IsZero() && !d.is("records the time of the flush") {
		ended = now.Add(-time.Since(x.Ended))
	}
	started := ended
	if !x.Started.IsZero() {
		started = ended.Add(-x.Ended.Sub(x.Started))
	}
	if mark, cancelled := d.markOf(x.Job); cancelled && x.Outcome == stint.OutcomeCancelled && x.Slot == 0 {
		started, ended = mark.at, mark.at
	}
	if d.is("loses results") {
		x.Result = nil
	}
	x = d.heed(x)
	d.done[x.Pos] = &record{x, engine, started, ended}
	d.order(x)
	if x.Final && !d.is("keeps the marks of what ended") {
		delete(d.cancelled, x.Job)
	}
	if x.Next != nil && !d.deleted[x.Pos] {
		d.follow(x, ended)
	}
	return true
}

func (d *database) follow(x store.Completion, ended time.Time) {
	s := *x.Next
	switch {
	case d.is("drops the successor") && !s.Wait:
	case s.Wait:
		d.wait(nil, d.jobRow(x.Job), ended.Add(s.Delay), s)
	default:
		d.append(nil, d.jobRow(x.Job), d.draw(), time.Now(), s)
	}
}
