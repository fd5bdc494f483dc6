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

// policies remembers which retry policies the database holds for certain.
type policies struct {
	mu    sync.Mutex
	known map[int64]retry.Policy
}

// policyID is the first 63 bits of the SHA-256 of the policy's JSON.
func policyID(text []byte) int64 {
	sum := sha256.Sum256(text)
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 1)
}

// storePolicies sees to it that the policies of the jobs are in the database,
// and returns their numbers. It never does so in the caller's transaction:
// producers would wait for each other's commits, and a number from a
// transaction that rolled back would stay in memory. There, policies that are
// not known yet travel with the job instead; nor is another connection taken
// while the caller holds one, since a small pool might have no other.
func (s *Store) storePolicies(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) (map[retry.Policy]int64, error) {
	var known map[retry.Policy]int64
	for _, j := range jobs {
		if j.Retry == retry.Default() {
			continue
		}
		if _, ok := known[j.Retry]; ok {
			continue
		}
		text, err := json.Marshal(j.Retry)
		if err != nil {
			return nil, err
		}
		id := policyID(text)
		if !s.policies.has(id) {
			if tx.Handle != nil {
				continue
			}
			_, err := s.pool.Exec(ctx, s.sql.in(`insert into stint.policies (id, body) values ($1, $2) on conflict do nothing`), id, text)
			if err != nil {
				return nil, translate(err)
			}
			s.policies.add(id, j.Retry)
		}
		if known == nil {
			known = map[retry.Policy]int64{}
		}
		known[j.Retry] = id
	}
	return known, nil
}

func (p *policies) has(id int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.known[id]
	return ok
}

func (p *policies) get(id int64) (retry.Policy, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	policy, ok := p.known[id]
	return policy, ok
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
