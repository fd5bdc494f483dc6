package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"sync"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// policies remembers which retry policies the database holds for certain, and
// what policies are there.
type policies struct {
	mu    sync.Mutex
	known map[int64]retry.Policy
	texts map[retry.Policy]policyText
}

// policyText is a policy as the database has it.
type policyText struct {
	id   int64
	body string
}

// policyID is the first 63 bits of the SHA-256 of the policy's JSON.
func policyID(text []byte) int64 {
	sum := sha256.Sum256(text)
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 1)
}

// dictionary is the distinct policies of a batch of jobs: each job refers to
// its place in it, from 1.
type dictionary struct {
	places map[retry.Policy]int32
	first  retry.Policy // at 1
	ids    []int64
	bodies []string
}

// storePolicies collects the policies of the jobs and sees to it that they are
// in the database. It never does so in the caller's transaction: producers
// would wait for each other's commits. There, policies that are not stored
// yet travel with the job; nor is another connection taken while the caller
// holds one, since a small pool might have no other.
//
// That a policy was stored once is only a hint. A database that was restored,
// or failed over to a standby that lagged, may not have it any more; so each
// statement that refers to one looks whether it is there.
func (s *Store) storePolicies(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) (dictionary, error) {
	var d dictionary
	for i := range jobs {
		j := &jobs[i]
		if j.Retry == retry.Default() || d.place(j.Retry) > 0 {
			continue
		}
		text, stored, err := s.policies.text(j.Retry)
		if err != nil {
			return d, err
		}
		if tx.Handle == nil && !stored {
			if err := s.storePolicy(ctx, text); err != nil {
				return d, err
			}
			s.policies.add(text.id, j.Retry)
		}
		if d.places == nil {
			d.places = map[retry.Policy]int32{}
		}
		if d.ids, d.bodies = append(d.ids, text.id), append(d.bodies, text.body); len(d.ids) == 1 {
			d.first = j.Retry
		}
		d.places[j.Retry] = int32(len(d.ids))
	}
	return d, nil
}

// place is where a policy stands; 0 where it does not. Nearly always that is the
// first: to compare costs a quarter of what finding it costs.
func (d *dictionary) place(p retry.Policy) int32 {
	if len(d.ids) > 0 && p == d.first {
		return 1
	}
	return d.places[p]
}

// storePolicy is read committed: under a stricter isolation two producers that
// store the same policy at once would fail on each other.
func (s *Store) storePolicy(ctx context.Context, text policyText) error {
	return s.once(ctx, nil, s.sql.in(`insert into stint.policies (id, body) values ($1, $2) on conflict do nothing`), text.id, text.body)
}

// text is a policy's, and whether the database holds it for certain.
func (p *policies) text(policy retry.Policy) (text policyText, stored bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, ok := p.texts[policy]
	if !ok {
		body, err := json.Marshal(policy)
		if err != nil {
			return text, false, err
		}
		text = policyText{policyID(body), string(body)}
		if p.texts == nil || len(p.texts) >= maxKnownPolicies {
			p.texts = map[retry.Policy]policyText{}
		}
		p.texts[policy] = text
	}
	_, stored = p.known[text.id]
	return text, stored, nil
}

// fill gives entries their policies, and lists those that are not known.
func (p *policies) fill(r *entryReader) (missing []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, policy, ok := int64(0), retry.Policy{}, false
	for i, id := range r.policy {
		if id == 0 {
			continue
		}
		if id != last { // most have that of the one before
			last = id
			policy, ok = p.known[id]
		}
		if !ok {
			missing = append(missing, id)
		}
		r.list[i].Retry = policy
	}
	return missing
}

// maxKnownPolicies bounds the memory of programs that make up policies as
// they go.
const maxKnownPolicies = 10_000

func (p *policies) add(id int64, policy retry.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxKnownPolicies {
		p.known = map[int64]retry.Policy{}
	}
	p.known[id] = policy
}
